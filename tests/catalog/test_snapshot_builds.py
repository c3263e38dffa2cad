"""Builds on the lab: clean, partial, and those that leave stray files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.catalog.snapshot_comments import mark_of
from provisioner.catalog.steps.syncing import UP_TO_DATE_TEXT
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.workspaces.actions.retiring import workspace_restore, workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle
from tests.support.projects import Project
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

MakeTemplate = Callable[..., Template]
# Leaves a mess where a file of the depot says so, and fails.
BUILD = """
cat src/*.txt > all.out
if grep -q BROKEN src/a.txt; then chmod u+w src/*.txt; echo mess >> src/a.txt
rm -f src/b.txt; exit 3; fi
"""


def build(template: Template, **asked: Any) -> Operation:
    operation = template_build(by=template.owner, template=template, **asked)
    settle(template)
    operation.refresh_from_db()
    return operation


def snapshot_of(operation: Operation) -> Snapshot:
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    return operation.snapshots.get()


def have_of(workspace: Workspace) -> tuple[int, str]:
    perforce = registry.perforce(workspace.site.perforce_server)
    have = perforce.files.have_list(workspace.client_name)
    return have.count, have.digest


def pin_of(snapshot: Snapshot) -> tuple[int, str]:
    return snapshot.have_count, snapshot.have_digest


def _alice() -> User:
    alice = User.objects.filter(username="alice").first()
    return alice or UserFactory.create(username="alice", uid=20001, gid=20000)


def workspace_of(template: Template, **asked: Any) -> Workspace:
    workspace = workspace_create(by=_alice(), template=template, **asked)
    settle(workspace)
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def test_the_mess_of_a_build_that_breaks_is_put_right_by_the_next(
    project: Project, make_template: MakeTemplate
) -> None:
    project.submit_paths({"src/a.txt": "one\n", "src/b.txt": "b\n"})
    template = make_template(
        project, build_command=BUILD, test_command="true", wanted_quality="tested"
    )
    first = snapshot_of(build(template))
    assert (first.quality, first.is_clean, first.mark) == ("tested", True, "Tested")

    project.submit_paths({"src/a.txt": "BROKEN\n"})
    operation = build(template)
    assert operation.status_code == "build_failed"
    assert not operation.snapshots.exists()
    assert default_snapshot(template) == first
    assert not (template.path / "src" / "b.txt").exists()

    mended = project.submit_paths({"src/c.txt": "c\n", "src/a.txt": "two\n"})
    operation = build(template)
    last = snapshot_of(operation)
    assert (last.change, last.quality, last.is_clean) == (mended, "tested", False)
    assert (template.path / "all.out").read_text() == "two\nb\nc\n"
    assert default_snapshot(template) == last
    assert last.operation == operation
    assert last.test_seconds > 0


def test_a_build_waits_while_its_log_cannot_be_written(
    project: Project, make_template: MakeTemplate, settings: Settings, tmp_path: Path
) -> None:
    """As where LOG_DIR was mounted read-only: nothing was begun, and it goes on."""
    project.submit_paths({"src/a.txt": "one\n"})
    template = make_template(project, build_command=BUILD)
    writable, settings.LOG_DIR = settings.LOG_DIR, tmp_path / "file"
    (tmp_path / "file").touch()

    operation = template_build(by=template.owner, template=template)
    run_jobs_once()

    step = operation.steps.get(state=Step.State.RETRYING)
    assert step.name == "build"
    assert "cannot be written" in step.error_message
    assert "make its directory writable" in step.error_message
    settings.LOG_DIR = writable
    settle(template)
    snapshot_of(Operation.objects.get(pk=operation.pk))


def test_a_clean_build_begins_with_versioned_files_alone(
    project: Project, make_template: MakeTemplate
) -> None:
    project.submit_paths({"src/a.txt": "one\n"})
    template = make_template(
        project,
        build_command="mkdir -p out/deep && date +%N >> out/deep/builds && wc -l < "
        "out/deep/builds > count.out && ln -sfn /etc out/link",
    )
    build(template)

    operation = build(template, is_clean=True)

    assert snapshot_of(operation).is_clean
    assert (template.path / "count.out").read_text().strip() == "1"
    assert (template.path / "src" / "a.txt").read_text() == "one\n"
    assert operation.steps.get(name="sync").progress["text"] == UP_TO_DATE_TEXT


@pytest.mark.integration
def test_a_part_is_refreshed_alone_and_never_becomes_the_default(
    project: Project, make_template: MakeTemplate
) -> None:
    project.submit_paths({"part/a.txt": "1\n", "rest/b.txt": "1\n"})
    template = make_template(project)
    first = snapshot_of(build(template))
    newest = project.submit_paths({"part/a.txt": "2\n", "rest/b.txt": "2\n"})
    path = f"//depot/{project.name}/part/..."

    partial = snapshot_of(build(template, paths=[path]))

    assert partial.change == first.change
    assert partial.parts == [{"path": path, "change": newest}]
    seen = registry.ontap(template.site).find_snapshot(
        template.volume_uuid, name=partial.name
    )
    mark = mark_of(seen.comment) if seen is not None else None
    assert mark is not None
    assert mark.parts == 1
    assert (template.path / "part" / "a.txt").read_text() == "2\n"
    assert (template.path / "rest" / "b.txt").read_text() == "1\n"
    assert default_snapshot(template) == first

    # Who chooses it gets exactly that, also from the trash.
    workspace = workspace_of(template, snapshot=partial)
    assert have_of(workspace) == pin_of(partial)
    assert (workspace.path / "part" / "a.txt").read_text() == "2\n"
    workspace_retire(by=workspace.owner, workspace=workspace)
    settle(workspace)
    assert workspace.state == Workspace.State.TRASHED, workspace.status_message
    workspace_restore(by=workspace.owner, workspace=workspace)
    settle(workspace)
    assert have_of(workspace) == pin_of(partial)

    # The next whole build brings all to one change.
    whole = snapshot_of(build(template))
    assert (whole.change, whole.parts) == (newest, [])
    assert (template.path / "rest" / "b.txt").read_text() == "2\n"
    assert default_snapshot(template) == whole
    assert have_of(workspace) == pin_of(partial)


def test_moving_the_template_between_snapshot_and_flush_changes_no_workspace(
    published_template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = published_template
    first = template.snapshots.get()
    perforce = registry.perforce(template.site.perforce_server)
    really_perform = workflow.perform

    def perform(step: Step) -> StepResult | None:
        if step.name == "flush":
            perforce.files.flush(template.client_name, change=first.change - 1)
        return really_perform(step)

    monkeypatch.setattr(workflow, "perform", perform)
    try:
        workspace = workspace_of(template)
        moved = perforce.files.have_list(template.client_name)
    finally:  # it is the template of other tests, too
        perforce.files.flush(template.client_name, change=first.change)

    assert (moved.count, moved.digest) != pin_of(first)
    assert have_of(workspace) == pin_of(first)
