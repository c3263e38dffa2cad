"""Generations on the lab: clean and partial builds, tests, broken trees, retention."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import CloneSpec
from provisioner.workspaces.actions import (
    template_build,
    template_update,
    workspace_create,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Operation, Snapshot, Template, Workspace
from provisioner.workspaces.queries import default_snapshot
from provisioner.workspaces.steps.pruning import delete_superfluous
from provisioner.workspaces.sweeps.retention import sweep_retention
from tests.factories import UserFactory
from tests.projects import Project
from tests.waiting import run_jobs_once, settle

pytestmark = pytest.mark.django_db(transaction=True)

MakeTemplate = Callable[..., Template]
# Fails to build, or to pass its test, where a file of the depot says so; leaves a mess.
BUILD = """
cat src/*.txt > all.out
if grep -q BROKEN src/a.txt; then chmod u+w src/*.txt; echo mess >> src/a.txt
rm -f src/b.txt; exit 3; fi
"""
TEST = "! grep WRONG all.out"


def build(template: Template, **asked: object) -> Operation:
    operation = template_build(by=template.created_by, template=template, **asked)
    settle(template)
    operation.refresh_from_db()
    return operation


def snapshot_of(operation: Operation) -> Snapshot:
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    return operation.snapshots.get()


def have_of(workspace: Workspace) -> tuple[int, str]:
    perforce = registry.perforce(workspace.site.perforce_server)
    have = perforce.have_list(workspace.client_name)
    return have.count, have.digest


def pin_of(snapshot: Snapshot) -> tuple[int, str]:
    return snapshot.have_count, snapshot.have_digest


def _alice() -> User:
    alice = User.objects.filter(username="alice").first()
    return alice or UserFactory(username="alice", uid=20001, gid=20000)


def workspace_of(template: Template, **asked: object) -> Workspace:
    workspace = workspace_create(by=_alice(), template=template, **asked)
    settle(workspace)
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def test_a_journey_of_generations(
    project: Project, make_template: MakeTemplate
) -> None:
    """Good, tests fail, build breaks, mended: the default is never a bad one."""
    project.submit_paths({"src/a.txt": "one\n", "src/b.txt": "b\n"})
    template = make_template(
        project, build_command=BUILD, test_command=TEST, wanted_quality="tested"
    )
    first = snapshot_of(build(template))
    assert (first.quality, first.is_clean, first.mark) == ("tested", True, "Tested")
    workspace = workspace_of(template)

    # A test that fails: published with its mark, and told.
    project.submit_paths({"src/a.txt": "WRONG\n"})
    operation = build(template)
    assert (operation.state, operation.status_code) == ("failed", "test_failed")
    assert "WRONG" in operation.status_message
    assert template.status_code == "test_failed"
    wrong = operation.snapshots.get()
    assert (wrong.quality, wrong.is_clean) == ("failed", False)
    assert default_snapshot(template) == first
    chosen = workspace_of(template, snapshot=wrong)
    assert (chosen.path / "src" / "a.txt").read_text() == "WRONG\n"

    # A build that fails, and leaves versioned files changed: nothing is published.
    project.submit_paths({"src/a.txt": "BROKEN\n"})
    operation = build(template)
    assert operation.status_code == "build_failed"
    assert not operation.snapshots.exists()
    assert default_snapshot(template) == first
    assert not (template.path / "src" / "b.txt").exists()

    # The next change mends it, and begins with the right versioned files.
    mended = project.submit_paths({"src/c.txt": "c\n", "src/a.txt": "two\n"})
    operation = build(template)
    last = snapshot_of(operation)
    assert operation.steps.get(name="sync").result["restored"] == 2
    assert (last.change, last.quality) == (mended, "tested")
    assert (template.path / "all.out").read_text() == "two\nb\nc\n"
    assert default_snapshot(template) == last
    assert last.operation == operation
    assert last.test_seconds > 0

    # What people have is as it was: each equals its pin.
    for has, pinned in ((workspace, first), (chosen, wrong)):
        assert have_of(has) == pin_of(pinned)
    assert (workspace.path / "src" / "a.txt").read_text() == "one\n"
    assert (workspace.path / "all.out").read_text() == "one\nb\n"


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
    assert not snapshot_of(build(template)).is_clean
    assert (template.path / "count.out").read_text().strip() == "2"

    operation = build(template, is_clean=True)

    assert snapshot_of(operation).is_clean
    assert (template.path / "count.out").read_text().strip() == "1"
    assert (template.path / "src" / "a.txt").read_text() == "one\n"
    assert operation.steps.get(name="clean").result["removed"] == 5
    assert operation.steps.get(name="sync").result["files"] == 0


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
    project: Project, make_template: MakeTemplate
) -> None:
    project.submit_paths({"a.txt": "1\n", "gone.txt": "1\n"})
    template = make_template(project)
    first = snapshot_of(build(template))
    workspace = workspace_create(by=_alice(), template=template)
    # Its clone is made, its client waits: the perforce queue stands still.
    run_jobs_once(queues=["storage", template.site.host_queue])
    project.submit_paths({"a.txt": "2\n", "gone.txt": None, "new.txt": "2\n"})
    perforce = registry.perforce(template.site.perforce_server)
    newest = perforce.latest_change((f"//depot/{project.name}/...",))

    perforce.flush(template.client_name, change=newest)
    settle(workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert have_of(workspace) == pin_of(first)
    perforce.flush(template.client_name, change=first.change)


def test_what_ontap_keeps_is_deleted_by_a_later_sweep(
    built_template: Template,
) -> None:
    template = template_update(
        by=built_template.created_by, template=built_template, snapshots_to_keep=1
    )
    first = template.snapshots.get()
    ontap = registry.ontap(template.site)
    foreign = ontap.create_clone(
        CloneSpec(
            name=f"foreign_{template.tag.hex[:6]}y",
            parent_volume=template.volume_name,
            parent_snapshot=first.name,
            comment="somebody else's",
            uid=None,
            gid=None,
        )
    )
    template.refresh_from_db()
    operation = build(template)
    prune = operation.steps.get(name="prune").result
    assert (prune["deleted"], list(prune["refused"])) == ([], [first.name])

    def sweep() -> Snapshot:
        sweep_retention(timestamp=int(timezone.now().timestamp()))
        run_jobs_once()
        first.refresh_from_db()
        return first

    assert sweep().deleted_at is None
    # Withdrawn by an attempt that was cut short: ONTAP itself says no, and why.
    Snapshot.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    uuid = template.volume_uuid
    deleted, refused = delete_superfluous(ontap, template, volume_uuid=uuid)
    assert (deleted, list(refused)) == ([], [first.name])
    first.refresh_from_db()
    assert first.deleted_at is None

    ontap.delete_volume(foreign.uuid, force=True)
    assert sweep().deleted_at is not None
    names = [s.name for s in ontap.list_snapshots(template.volume_uuid)]
    assert names == [default_snapshot(template).name]
