"""The workflows of copies: transfer, delete."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.copies import steps
from provisioner.copies.models import (
    MOVING_COPIES,
    CopiedSnapshot,
    CopyOperation,
    CopyParameters,
    WorkspaceCopy,
)
from provisioner.copies.states import set_copy_state
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import LIGHT, StepSpec, Workflow, register
from provisioner.lib import clocks
from provisioner.workspaces.queries import workspaces_visible_to


def _has_client(operation: Operation) -> bool:
    return bool(operation.subject.workspacecopy.workspace.client_name)


TRANSFER = (
    StepSpec("peered", "Check the peering", steps.ensure_paired, STORAGE),
    StepSpec(
        "volume",
        "Clone the snapshot there",
        steps.ensure_volume,
        STORAGE,
        ("peered",),
    ),
    StepSpec(
        "relationship",
        "Continue from the common snapshot",
        steps.ensure_relationship,
        STORAGE,
        ("volume",),
    ),
    StepSpec(
        "snapshot",
        "Take a snapshot of the workspace",
        steps.ensure_snapshot,
        STORAGE,
        ("relationship",),
    ),
    StepSpec(
        "record",
        "Record what is opened",
        steps.ensure_recorded,
        PERFORCE,
        ("snapshot",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "transfer",
        "Transfer the changes",
        steps.ensure_transferred,
        STORAGE,
        ("record",),
    ),
    StepSpec(
        "prune",
        "Delete earlier snapshots",
        steps.ensure_pruned,
        STORAGE,
        ("transfer",),
    ),
)
DELETE = (
    StepSpec(
        "relationship",
        "Delete the SnapMirror relationship",
        steps.ensure_relationship_deleted,
        STORAGE,
    ),
    StepSpec(
        "snapshots",
        "Delete its snapshots of the workspace",
        steps.ensure_snapshots_deleted,
        STORAGE,
        ("relationship",),
    ),
    StepSpec(
        "delete",
        "Delete the volume",
        steps.ensure_volume_deleted,
        STORAGE,
        ("relationship",),
    ),
)


def _subject(operation: Operation) -> WorkspaceCopy:
    copy: WorkspaceCopy = operation.subject.workspacecopy
    return copy


def _has_arrived(operation: Operation) -> None:
    copy = _subject(operation)
    copied = find_result(operation, steps.Copied)
    assert copied is not None
    pk = CopyParameters.of(operation).copied
    is_first = not copy.snapshots.filter(arrived_at__isnull=False).exists()
    CopiedSnapshot.objects.filter(pk=pk).update(
        arrived_at=clocks.database_now(), bytes=copied.bytes, seconds=copied.seconds
    )
    copy.snapshots.exclude(pk=pk).delete()
    set_copy_state(
        copy,
        WorkspaceCopy.State.READY,
        event=f"Copied to {copy.site.name}." if is_first else "",
    )


def _is_deleted(operation: Operation) -> None:
    copy = _subject(operation)
    had_any, _ = copy.snapshots.all().delete()
    set_copy_state(
        copy,
        WorkspaceCopy.State.DELETED,
        event=f"The copy at {copy.site.name} was deleted." if had_any else "",
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_subject(operation), failure)


def _fail(copy: WorkspaceCopy, failure: Failure) -> None:
    if copy.is_moving:
        set_copy_state(
            copy,
            WorkspaceCopy.State.FAILED,
            code=failure.code,
            message=failure.message,
            event=f"The copy at {copy.site.name}: {failure.message}",
        )


def _visible_to(user: User) -> QuerySet[Any, Any]:
    """Copies are visible to everybody who may see their workspace."""
    workspaces = workspaces_visible_to(user).order_by().values("pk")
    copies = WorkspaceCopy.with_deleted.filter(workspace__in=workspaces)
    return copies.order_by().values("subject")


subjects.register(
    SubjectKind(
        field="workspacecopy",
        rows=lambda: WorkspaceCopy.with_deleted.select_related(
            "workspace__site__perforce_server",
            "workspace__snapshot",
            "workspace__template",
            "site__perforce_server",
        ),
        visible=_visible_to,
        moving=MOVING_COPIES,
        fail=_fail,
        crumbs="copies/_crumbs.html",
    )
)
for _kind, _steps, _on_success in (
    (CopyOperation.TRANSFER, TRANSFER, _has_arrived),
    (CopyOperation.DELETE, DELETE, _is_deleted),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_has_failed,
            run=steps.CopyRun,
        ),
    )
