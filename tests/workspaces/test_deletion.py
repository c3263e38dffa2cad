"""Every obstacle to a deletion, through retiring, again, restoring and purging."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_django import Settings

from provisioner.demo.checks import left_behind
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec, ShelvedFile
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.marks import marked
from provisioner.workspaces.models import Rescue, Unsubmitted, Workspace
from provisioner.workspaces.refusals import NotInTrash, WorkspaceRetired
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def open_for_edit(at_work: AtWork) -> None:
    at_work.open_for_edit()
    at_work.file.write_text("opened and changed\n")


def leave_files_and_an_empty_change(at_work: AtWork) -> None:
    at_work.leave_an_untracked_file()
    secret = at_work.root / "src" / "made-by-sudo.txt"
    secret.write_text("made by sudo\n")
    secret.chmod(0o600)
    change = at_work.p4.fetch_change()
    change["Description"] = "nothing in it"
    change.pop("Files", None)
    at_work.p4.save_change(change)


def lock_the_client(at_work: AtWork) -> None:
    client = at_work.p4.fetch_client()
    client["Options"] = client["Options"].replace("unlocked", "locked")
    at_work.p4.save_client(client)
    open_for_edit(at_work)


def give_the_client_away(at_work: AtWork) -> None:
    open_for_edit(at_work)
    client = at_work.p4.fetch_client()
    client["Owner"] = "bob"
    at_work.p4.save_client(client)


def open_exclusively(at_work: AtWork) -> None:
    # Whom somebody else keeps from it is only warned.
    assert [
        said["action"]
        for said in at_work.p4.run("edit", "-t", "text+l", str(at_work.file))
    ] == ["edit"]
    at_work.file.write_text("mine alone\n")


def link_out_of_the_clone(at_work: AtWork) -> None:
    (at_work.root / "src" / "passwords").symlink_to("/etc/passwd")
    at_work.file.unlink()
    at_work.file.symlink_to("/etc/hostname")


@dataclass(frozen=True)
class Obstacle:
    """`archived` are the paths that only the archive can have, `shelved` how many."""

    prepare: Callable[[AtWork], None]
    archived: tuple[str, ...] = ()
    shelved: int = 0


OBSTACLES = {
    "shelved": Obstacle(AtWork.shelve),
    "locked client": Obstacle(lock_the_client, shelved=1),
    "foreign owner": Obstacle(give_the_client_away, shelved=1),
    "exclusive lock": Obstacle(open_exclusively, shelved=1),
    "files beside an empty change": Obstacle(
        leave_files_and_an_empty_change,
        archived=("src/made-by-sudo.txt", "src/notes.txt"),
    ),
    "edited, unopened": Obstacle(
        AtWork.change_without_opening, archived=("src/file3.txt",)
    ),
    "symlinks": Obstacle(
        link_out_of_the_clone, archived=("src/file3.txt", "src/passwords")
    ),
}


@pytest.fixture
def perforce(lab_workspace: Workspace) -> PerforceGateway:
    return registry.perforce(lab_workspace.site.perforce_server)


def ask(
    action: Callable[..., Operation], workspace: Workspace, **arguments: str
) -> Operation:
    operation = action(by=workspace.owner, workspace=workspace, **arguments)
    settle(workspace)
    operation.refresh_from_db()
    return operation


def state_of(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return every entry below a directory, links as where they lead."""
    return {
        str(path.relative_to(root)): ("link", os.fsencode(os.readlink(path)))
        if path.is_symlink()
        else ("file", path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def opened_in(perforce: PerforceGateway, client: str) -> set[tuple[str, str, str]]:
    return {
        (f.depot_file, f.action, f.type) for f in perforce.changes.list_opened(client)
    }


def client_of(perforce: PerforceGateway, workspace: Workspace) -> ClientSpec:
    """Return the client but for its mark, which is new whenever it is defined."""
    client = perforce.clients.find(workspace.client_name)
    assert client is not None
    said = marked(client.description, mark="0" * 16)
    return dataclasses.replace(
        client, description=said, updated_at=None, accessed_at=None
    )


def shelved_in(
    perforce: PerforceGateway, workspace: Workspace
) -> dict[int, list[ShelvedFile]]:
    return {
        change.change: perforce.shelves.list_files(change.change)
        for change in perforce.changes.list_pending(workspace.client_name)
        if change.is_shelved
    }


def pending_in(
    perforce: PerforceGateway, workspace: Workspace
) -> list[tuple[str, str, int]]:
    """Return whose pending changes there are, what they say, and with how many files.

    Their numbers change, and what was shelved from them stays shelved.
    """
    pending = perforce.changes.list_pending(workspace.client_name)
    return sorted((c.user, c.description, c.files) for c in pending if not c.is_shelved)


@pytest.mark.integration
@pytest.mark.parametrize("name", OBSTACLES)
@needs_root
def test_no_obstacle_costs_any_work(
    name: str,
    lab_workspace: Workspace,
    at_work: AtWork,
    perforce: PerforceGateway,
) -> None:
    workspace, obstacle = lab_workspace, OBSTACLES[name]
    obstacle.prepare(at_work)
    files, opened = (
        state_of(workspace.path),
        opened_in(perforce, workspace.client_name),
    )
    client, shelved = client_of(perforce, workspace), shelved_in(perforce, workspace)
    pending = pending_in(perforce, workspace)

    retirement = ask(workspace_retire, workspace, unsubmitted=Unsubmitted.RESCUE)
    assert retirement.state == Operation.State.SUCCEEDED, retirement.status_message
    assert workspace.state == Workspace.State.TRASHED
    assert perforce.clients.find(workspace.client_name) is None
    with pytest.raises(WorkspaceRetired):
        ask(workspace_retire, workspace)

    restoration = ask(workspace_restore, workspace)
    assert restoration.state == Operation.State.SUCCEEDED, restoration.status_message
    not_restored = (restoration.findings or {})["not_restored"]
    assert not_restored == []
    assert pending_in(perforce, workspace) == pending
    assert state_of(workspace.path) == files
    assert opened_in(perforce, workspace.client_name) == opened
    assert client_of(perforce, workspace) == client
    # What was shelved before stays as it is; it was put there to last.
    assert {c: perforce.shelves.list_files(c) for c in shelved} == shelved

    again = ask(workspace_retire, workspace, unsubmitted=Unsubmitted.RESCUE)
    assert again.state == Operation.State.SUCCEEDED, again.status_message
    assert workspace.state == Workspace.State.TRASHED
    ask(workspace_purge, workspace)
    assert workspace.state == Workspace.State.RETIRED, workspace.status_message
    assert left_behind(workspace) == []
    rescue = Rescue.objects.filter(workspace=workspace).first()
    assert rescue is not None
    assert rescue.is_complete
    assert sum(len(shelf["files"]) for shelf in rescue.shelves) == obstacle.shelved
    assert archived_in(rescue) == sorted(obstacle.archived)
    for shelf in rescue.shelves:
        assert perforce.shelves.list_files(shelf["change"])
    assert bool(shelved) == (name == "shelved")
    assert {c: perforce.shelves.list_files(c) for c in shelved} == shelved


@pytest.mark.parametrize("goes_on_by", [workspace_restore, None])
@needs_root
def test_a_lock_survives_a_retirement_that_fails_and_one_that_tries_again(
    goes_on_by: Callable[..., Operation] | None,
    lab_workspace: Workspace,
    at_work: AtWork,
    perforce: PerforceGateway,
    lab: Lab,
    settings: Settings,
) -> None:
    workspace = lab_workspace
    lock_the_client(at_work)
    # Its deletion fails for good: the client stays, unlocked by the step before.
    settings.STEP_GIVE_UP_SECONDS, patience = 0.0, settings.STEP_GIVE_UP_SECONDS
    lab.break_perforce({"command": "revert", "error": "no such luck", "times": 1})
    retirement = ask(workspace_retire, workspace, unsubmitted=Unsubmitted.RESCUE)
    assert retirement.state == Operation.State.FAILED, retirement.status_message
    settings.STEP_GIVE_UP_SECONDS = patience
    client = perforce.clients.find(workspace.client_name)
    assert client is not None
    assert " unlocked" in client.options

    if goes_on_by is None:
        again = ask(workspace_retry, workspace)
        assert again.state == Operation.State.SUCCEEDED, again.status_message
    ask(workspace_restore, workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    client = perforce.clients.find(workspace.client_name)
    assert client is not None
    assert " locked" in client.options


def archived_in(rescue: Rescue) -> list[str]:
    if not rescue.directory:
        return []
    with tarfile.open(Path(rescue.directory) / "work.tar") as archive:
        return sorted(archive.getnames())


@pytest.fixture
def full_rescue_area(lab: Lab) -> Iterator[Path]:
    """A directory with no room for anything."""
    area = lab.root / "full"
    area.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=100", "full", str(area)]
    subprocess.run(mount, check=True)
    yield area
    subprocess.run(["umount", str(area)], check=True)
    area.rmdir()


@needs_root
def test_a_full_rescue_area_stops_everything_and_loses_nothing(
    lab_workspace: Workspace, at_work: AtWork, full_rescue_area: Path
) -> None:
    workspace = lab_workspace
    (at_work.root / "src" / "large.bin").write_bytes(os.urandom(100_000))
    files = state_of(workspace.path)
    Site.objects.update(rescue_root=str(full_rescue_area))

    for _ in range(2):
        operation = ask(workspace_retire, workspace, unsubmitted=Unsubmitted.RESCUE)
        assert operation.state == Operation.State.FAILED
        assert operation.status_code == "rescue_disk_full"
        assert workspace.state == Workspace.State.FAILED
        assert state_of(workspace.path) == files
        assert not list(full_rescue_area.rglob("*.tar"))

    with pytest.raises(NotInTrash):
        ask(workspace_purge, workspace)
    assert state_of(workspace.path) == files

    ask(workspace_restore, workspace)
    assert workspace.state == Workspace.State.READY
    assert state_of(workspace.path) == files

    # With room again it goes, and a purge needs none: the disk is full once more.
    mount = ["mount", "-o", "remount,size=1m,nr_inodes=100", str(full_rescue_area)]
    subprocess.run(mount, check=True)
    ask(workspace_retire, workspace, unsubmitted=Unsubmitted.RESCUE)
    assert workspace.state == Workspace.State.TRASHED, workspace.status_message
    fill(full_rescue_area)
    ask(workspace_purge, workspace)
    assert workspace.state == Workspace.State.RETIRED, workspace.status_message
    assert left_behind(workspace) == []
    rescue = Rescue.objects.get(workspace=workspace, is_complete=True)
    assert archived_in(rescue) == ["src/large.bin"]


def fill(area: Path) -> None:
    """Leave no room on a file system."""
    filling = ["dd", "if=/dev/zero", f"of={area / 'filler'}", "bs=4k"]
    ended = subprocess.run(filling, capture_output=True, text=True)
    assert "No space left" in ended.stderr
