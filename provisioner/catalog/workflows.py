"""The workflows of templates: their steps, and their effects on the template."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.events import template_built
from provisioner.catalog.models import (
    MOVING_TEMPLATES,
    BuildParameters,
    Template,
    TemplateOperation,
    VolumeOperation,
)
from provisioner.catalog.queries import in_scope
from provisioner.catalog.states import set_template_state
from provisioner.catalog.steps import (
    commands,
    contents,
    deleting,
    pruning,
    publishing,
    sizing,
    volume,
)
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import COMMANDS, HOST, PERFORCE, STORAGE
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import (
    LIGHT,
    LONG,
    StepSpec,
    Workflow,
    register,
)


def _is_clean_build(operation: Operation) -> bool:
    return BuildParameters.of(operation).clean


def _has_test(operation: Operation) -> bool:
    return bool(operation.subject.template.test_command.strip())


TEMPLATE_BUILD = (
    # First: it counts files of a new view, for which the volume has inodes then.
    StepSpec(
        "client",
        "Define the client",
        volume.ensure_client,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec(
        "volume",
        "Create the volume",
        volume.ensure_volume,
        STORAGE,
        ("client",),
        is_infrastructure=True,
    ),
    StepSpec(
        "export",
        "Export it",
        volume.ensure_exported,
        STORAGE,
        ("volume",),
        is_infrastructure=True,
    ),
    StepSpec(
        "mount",
        "Mount it",
        volume.ensure_mounted,
        STORAGE,
        ("export",),
        is_infrastructure=True,
    ),
    StepSpec(
        "visible",
        "Check the mount",
        volume.ensure_visible,
        HOST,
        ("mount",),
        is_infrastructure=True,
    ),
    StepSpec(
        "clean",
        "Remove unversioned files",
        contents.ensure_clean,
        HOST,
        ("visible",),
        applies=_is_clean_build,
        perforce=LIGHT,
    ),
    StepSpec(
        "sync",
        "Sync the files",
        contents.ensure_synced,
        HOST,
        ("visible", "clean"),
        perforce=LONG,
    ),
    StepSpec("build", "Build", commands.ensure_built, COMMANDS, ("sync",)),
    StepSpec(
        "test", "Test", commands.ensure_tested, COMMANDS, ("build",), applies=_has_test
    ),
    StepSpec(
        "verify",
        "Verify",
        publishing.ensure_verified,
        HOST,
        ("test",),
        perforce=LONG,
    ),
    StepSpec(
        "snapshot",
        "Take and publish the snapshot",
        publishing.ensure_snapshot,
        STORAGE,
        ("verify",),
        is_commit_point=True,
        is_infrastructure=True,
    ),
    StepSpec(
        "prune",
        "Delete snapshots that nothing needs",
        pruning.ensure_pruned,
        STORAGE,
        ("snapshot",),
        is_infrastructure=True,
    ),
    StepSpec(
        "outcome",
        "Report the test's result",
        publishing.ensure_outcome,
        STORAGE,
        ("prune",),
        applies=_has_test,
    ),
)


def _mounts_each(operation: Operation) -> bool:
    return bool(operation.site.mounts_each)


TEMPLATE_DELETE = (
    StepSpec("clones", "Check for clones", deleting.ensure_no_clones, STORAGE),
    StepSpec(
        "client",
        "Delete the client",
        deleting.ensure_client_deleted,
        PERFORCE,
        ("clones",),
        perforce=LIGHT,
    ),
    StepSpec(
        "leave",
        "Unmount it on a host",
        deleting.ensure_left,
        HOST,
        ("client",),
        applies=_mounts_each,
    ),
    StepSpec(
        "unmount",
        "Unmount it",
        deleting.ensure_unmounted,
        STORAGE,
        ("client", "leave"),
    ),
    StepSpec(
        "delete",
        "Delete the volume",
        deleting.ensure_volume_deleted,
        STORAGE,
        ("unmount",),
    ),
    StepSpec(
        "gone",
        "Verify that nothing is left",
        deleting.ensure_nothing_left,
        PERFORCE,
        ("delete",),
        perforce=LIGHT,
    ),
)


VOLUME_CHANGE = (StepSpec("size", "Resize the volume", sizing.ensure_size, STORAGE),)


def _subject(operation: Operation) -> Template:
    return operation.subject.template


def _is_ready(operation: Operation) -> None:
    template = _subject(operation)
    set_template_state(template, Template.State.READY)
    template_built.send(Template, template=template)


def _is_deleted(operation: Operation) -> None:
    set_template_state(
        _subject(operation), Template.State.DELETED, actor=operation.requested_by
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_subject(operation), failure)


def _volume_not_changed(operation: Operation, failure: Failure) -> None:
    """Record why; the template stays as it was, and its next build tries again."""
    record_event(
        _subject(operation),
        kind="template_volume_failed",
        message=failure.message,
        actor=operation.requested_by,
    )


def _fail(template: Template, failure: Failure) -> None:
    if template.is_moving:
        set_template_state(
            template,
            Template.State.FAILED,
            code=failure.code,
            message=failure.message,
        )


def _visible_to(user: User) -> QuerySet[Any, Any]:
    """Builds are visible to everybody, as their results are."""
    templates = Template.with_deleted.filter(in_scope(user, by="pk"))
    return templates.order_by().values("subject")


subjects.register(
    SubjectKind(
        field="template",
        rows=lambda: Template.objects.select_related("site__perforce_server"),
        visible=_visible_to,
        moving=MOVING_TEMPLATES,
        fail=_fail,
        crumbs="catalog/_crumbs.html",
        error_patterns=lambda template: template.error_pattern_lines,
    )
)
register(
    TemplateOperation.BUILD,
    Workflow(
        steps=TEMPLATE_BUILD,
        on_success=_is_ready,
        on_failure=_has_failed,
        run=TemplateRun,
    ),
)
register(
    TemplateOperation.DELETE,
    Workflow(
        steps=TEMPLATE_DELETE,
        on_success=_is_deleted,
        on_failure=_has_failed,
        run=TemplateRun,
    ),
)
register(
    VolumeOperation.CHANGE,
    Workflow(
        steps=VOLUME_CHANGE,
        on_success=lambda operation: None,
        on_failure=_volume_not_changed,
        run=TemplateRun,
    ),
)
