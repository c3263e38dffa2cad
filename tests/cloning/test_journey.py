"""A workspace is cloned with its work, for somebody else, and is not touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from provisioner.accounts.models import Team, User
from provisioner.cloning.actions import workspace_clone
from provisioner.cloning.models import WorkspaceClone
from provisioner.cloning.sweeps import release_sources
from provisioner.gateways import registry
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.storage.actions import workspace_split
from provisioner.workspace_snapshots.models import ClientReading, WorkspaceSnapshot
from provisioner.workspaces.actions.retiring import workspace_purge, workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.recording import read_client
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)

OURS = (".p4config", ".cloneyardignore")


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return owner and contents of all files, without those that each workspace has."""
    return {
        str(path.relative_to(root)): (path.stat().st_uid, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".snapshot" not in path.parts and path.name not in OURS
    }


def opened(workspace: Workspace) -> list[tuple[str, str, str, int]]:
    gateway = registry.perforce(workspace.perforce_server)
    return sorted(
        (file.user, file.depot_file, file.action, file.revision)
        for file in gateway.changes.list_opened(workspace.client_name)
    )


def have(workspace: Workspace) -> tuple[int, str]:
    gateway = registry.perforce_for(
        workspace.perforce_server, client=workspace.client_name
    )
    found = gateway.files.have_list(workspace.client_name)
    return found.count, found.digest


def snapshots_of(workspace: Workspace) -> list[str]:
    ontap = registry.ontap(workspace.site)
    listed = ontap.list_snapshots(workspace.volume_uuid)
    return [each.name for each in listed if each.name.startswith("cloneyard-")]


@pytest.fixture
def bob(transactional_db: None, lab: Lab) -> User:
    return UserFactory.create(username="bob", uid=20002, gid=20000)


def work(at_work: AtWork) -> None:
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")
    new = at_work.root / "src" / "new.txt"
    new.write_text("added\n")
    at_work.p4.run("add", str(new))
    at_work.p4.run("sync", f"{at_work.root}/src/file7.txt#none")
    at_work.leave_an_untracked_file()
    at_work.give_to_owner()


def test_it_is_cloned_with_its_work_and_not_touched(
    at_work: AtWork, lab: Lab, run_jobs: Callable[[], None]
) -> None:
    source = at_work.workspace
    work(at_work)
    before = (tree(source.path), opened(source), have(source))
    snapshots = {"method": "POST", "path": "/api/storage/volumes/*/snapshots"}
    lab.break_ontap({**snapshots, "drop": True, "when": "after", "times": 1})

    made = workspace_clone(by=source.owner, source=source)
    assert workspace_clone(by=source.owner, source=source) == made  # a second click
    settle(made)
    lab.break_ontap()

    assert made.state == Workspace.State.READY, made.status_message
    assert (tree(made.path), opened(made), have(made)) == before
    assert (made.cloned_from, made.owner) == (source.volume_name, source.owner)
    assert f"P4CLIENT={made.client_name}" in (made.path / ".p4config").read_text()
    operation = made.operations.get()
    assert operation.findings["not_restored"] == []
    for step in operation.steps.filter(state="done"):
        perform_again(step)
    assert (tree(made.path), opened(made), have(made)) == before
    assert (tree(source.path), opened(source), have(source)) == before
    assert len(snapshots_of(source)) == 1

    (made.path / "src" / "broken.txt").write_text("an experiment")
    assert tree(source.path) == before[0]
    with pytest.raises(ActionRefused) as refused:
        workspace_split(by=UserFactory.create(is_staff=True), workspace=source)
    assert refused.value.code == "workspace_has_clones"
    workspace_retire(by=source.owner, workspace=source, unsubmitted="discard")
    settle(source)
    workspace_purge(by=source.owner, workspace=source)
    run_jobs()
    source.refresh_from_db()
    assert source.state == Workspace.State.PURGING  # it waits for its clone
    workspace_retire(by=made.owner, workspace=made, unsubmitted="discard", purge=True)
    assert settle(made).state == Workspace.State.RETIRED, made.status_message
    assert settle(source).state == Workspace.State.RETIRED, source.status_message
    release_sources(timestamp=0)
    assert WorkspaceClone.objects.get().released_at is not None


def test_a_colleague_gets_one_as_of_a_snapshot(at_work: AtWork, bob: User) -> None:
    source = at_work.workspace
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")
    ontap = registry.ontap(source.site)
    kept = ontap.create_snapshot(source.volume_uuid, name="cloneyard-ws-1", comment="")
    reading = ClientReading.objects.create(
        workspace=source, **read_client(source, before=None)
    )
    snapshot = WorkspaceSnapshot.objects.create(
        workspace=source,
        name=kept.name,
        ontap_uuid=kept.uuid,
        taken_at=clocks.database_now(),
        reading=reading,
    )
    at_work.file.write_text("ruined\n")
    at_work.p4.run("revert", "-k", str(at_work.file))
    with pytest.raises(ActionRefused) as refused:
        workspace_clone(by=source.owner, source=source, owner=bob)
    assert refused.value.code == "cannot_see_source"
    bob.team = source.owner.team = Team.objects.create(name="tools")
    bob.save()
    source.owner.save()

    made = settle(
        workspace_clone(by=source.owner, source=source, owner=bob, snapshot=snapshot)
    )

    assert made.state == Workspace.State.READY, made.status_message
    file = made.path / "src" / "file3.txt"
    assert (file.read_text(), file.stat().st_uid) == ("mine\n", 20002)
    assert [(user, action) for user, _, action, _ in opened(made)] == [("bob", "edit")]
    assert snapshots_of(source) == [kept.name]
    workspace_retire(by=bob, workspace=made, unsubmitted="discard", purge=True)
    settle(made)
    release_sources(timestamp=0)
    assert snapshots_of(source) == [kept.name]  # ONTAP's own goes by its policy


@pytest.mark.integration
def test_what_fails_half_way_is_retried_and_its_snapshot_goes(
    at_work: AtWork, lab: Lab, run_jobs: Callable[[], None]
) -> None:
    source = at_work.workspace
    lab.break_ontap({"method": "POST", "path": "/api/storage/volumes", "job_code": "1"})
    made = settle(workspace_clone(by=source.owner, source=source, name="again"))
    lab.break_ontap()
    assert made.state == Workspace.State.FAILED
    assert len(snapshots_of(source)) == 1
    workspace_retire(by=made.owner, workspace=made, unsubmitted="discard", purge=True)
    assert settle(made).state == Workspace.State.RETIRED, made.status_message

    release_sources(timestamp=0)
    release_sources(timestamp=0)

    assert snapshots_of(source) == []
    assert source.state == Workspace.State.READY
