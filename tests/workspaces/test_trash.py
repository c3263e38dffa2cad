"""The trash: what is rescued, restored and purged."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from provisioner.audit_log.models import Event
from provisioner.catalog import pins
from provisioner.demo.checks import left_behind
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.perforce.clients import Clients
from provisioner.sites.models import Site
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Rescue, Unsubmitted, Workspace
from provisioner.workspaces.refusals import (
    NothingToRestore,
    NotInTrash,
    WorkspaceRetired,
)
from provisioner.workspaces.states import client_of
from provisioner.workspaces.steps import retire as retiring
from provisioner.workspaces.workflows import RESTORE
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.retiring import contents_of, restore, retire
from tests.support.work import KINDS_OF_WORK, AtWork

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def at_the_last_moment(
    lab_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], None]], None]:
    """Run something once, right before the workspace's client is deleted."""
    delete_client = Clients.delete

    def have_done(work: Callable[[], None]) -> None:
        waiting = [work]

        def be_late(self: Clients, name: str, **options: Any) -> None:
            if name == lab_workspace.client_name and waiting:
                waiting.pop()()
            delete_client(self, name, **options)

        monkeypatch.setattr(Clients, "delete", be_late)

    return have_done


def opened_in(workspace: Workspace) -> set[tuple[str, str, str]]:
    perforce = registry.perforce(workspace.site.perforce_server)
    return {
        (file.depot_file, file.action, file.user)
        for file in perforce.changes.list_opened(workspace.client_name)
    }


def submit_from(at_work: AtWork) -> None:
    """Submit a file from the workspace: its revision is newer than the pin."""
    with at_work.p4.at_exception_level(1):  # most have it already
        at_work.p4.run("sync", str(at_work.file))
    at_work.open_for_edit()
    at_work.file.write_text("submitted from the workspace\n")
    change = at_work.p4.fetch_change()
    change["Description"] = "from the workspace"
    at_work.p4.run_submit(change)


def test_a_retired_workspace_is_in_the_trash(lab_workspace: Workspace) -> None:
    operation = retire(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert lab_workspace.state == Workspace.State.TRASHED
    assert lab_workspace.purge_at is not None
    assert lab_workspace.trashed_at is not None
    kept_hours = (
        lab_workspace.purge_at - lab_workspace.trashed_at
    ).total_seconds() / 3600
    assert round(kept_hours, 3) == 72
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    assert perforce.clients.find(lab_workspace.client_name) is None
    volume = registry.ontap(lab_workspace.site).find_volume(lab_workspace.volume_name)
    assert volume is not None
    assert not volume.junction_path
    assert volume.export_policy == lab_workspace.site.frozen_policy
    assert not lab_workspace.path.exists()


def test_what_was_put_away_comes_back_as_it_was(lab_workspace: Workspace) -> None:
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    before = contents_of(lab_workspace.path)
    client = perforce.clients.find(lab_workspace.client_name)
    have = perforce.files.have_list(lab_workspace.client_name)
    retire(lab_workspace)

    operation = restore(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert operation.findings == {"not_restored": []}
    assert lab_workspace.state == Workspace.State.READY
    assert contents_of(lab_workspace.path) == before
    again = perforce.clients.find(lab_workspace.client_name)
    assert again is not None
    assert client is not None
    assert (again.owner, again.root, again.view, again.options) == (
        client.owner,
        client.root,
        client.view,
        client.options,
    )
    assert perforce.files.have_list(lab_workspace.client_name) == have
    assert (lab_workspace.purge_at, lab_workspace.trashed_at) == (None, None)


def test_work_of_every_kind_is_rescued_and_comes_back(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    for number, work in enumerate(KINDS_OF_WORK.values()):
        at_work.file = at_work.root / "src" / f"file{number}.txt"
        work(at_work)
    before, opened = contents_of(lab_workspace.path), opened_in(lab_workspace)

    operation = retire(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    rescue = Rescue.objects.get(workspace=lab_workspace)
    assert rescue.is_complete
    assert KINDS_OF_WORK.keys() <= rescue.inventory.keys()
    assert sum(len(shelf["files"]) for shelf in rescue.shelves) == 1
    assert rescue.archived_files == 2
    restore(lab_workspace)
    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert contents_of(lab_workspace.path) == before
    assert opened_in(lab_workspace) == opened


def test_the_archive_of_a_rescue_holds_the_files(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.leave_an_untracked_file()
    at_work.change_without_opening()
    retire(lab_workspace)

    directory = Path(Rescue.objects.get(workspace=lab_workspace).directory)

    assert directory.is_relative_to(lab_workspace.site.rescue_root)
    assert directory.stat().st_uid == lab_workspace.uid
    with tarfile.open(directory / "work.tar") as archive:
        assert sorted(archive.getnames()) == ["src/file3.txt", "src/notes.txt"]
        kept = archive.extractfile("src/notes.txt")
        assert kept is not None
        assert kept.read() == b"do not lose me\n"
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest


def test_files_synced_after_the_snapshot_are_known_again(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is flushed in batches, as that of a new workspace of many files."""
    monkeypatch.setattr(pins, "FILES_IN_A_BATCH", 0)
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    submit_from(at_work)
    have = perforce.files.have_list(lab_workspace.client_name)
    assert have.digest != lab_workspace.snapshot.have_digest
    retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)
    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message

    # Only batches are asked for by directory; this answer is lost.
    lab.break_perforce({"command": "dirs", "drop": "after", "times": 1})
    operation = restore(lab_workspace)

    assert operation.steps.get(name="flush").attempt == 2
    assert perforce.files.have_list(lab_workspace.client_name) == have


def test_what_was_synced_is_known_again_also_where_work_was_discarded(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    submit_from(at_work)
    at_work.leave_an_untracked_file()
    have = perforce.files.have_list(lab_workspace.client_name)
    assert have.digest != lab_workspace.snapshot.have_digest

    retire(lab_workspace, unsubmitted=Unsubmitted.DISCARD)
    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert perforce.files.have_list(lab_workspace.client_name) == have
    assert not Rescue.objects.with_work().exists()


def test_a_client_that_is_bound_to_a_host_can_be_discarded(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    client = at_work.p4.fetch_client()
    client["Host"] = "elsewhere"
    at_work.p4.save_client(client)

    operation = retire(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message


@pytest.mark.parametrize("is_newer", [False, True])
def test_the_work_of_a_client_that_is_bound_to_a_host_is_rescued_and_comes_back(
    lab_workspace: Workspace, at_work: AtWork, is_newer: bool
) -> None:
    if is_newer:
        at_work.p4.run("sync", "-k", f"{at_work.file}#none")
    else:
        at_work.open_for_edit()
    opened = opened_in(lab_workspace)
    client = at_work.p4.fetch_client()
    client["Host"] = "elsewhere"
    at_work.p4.save_client(client)

    operation = retire(lab_workspace)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert opened_in(lab_workspace) == opened
    client = at_work.p4.fetch_client()
    assert client.pop("Host") == "elsewhere"
    at_work.p4.save_client(client)  # so that what is opened can be reverted from here


def test_what_was_opened_before_an_earlier_retirement_is_not_opened_again(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.open_for_edit()
    added = at_work.root / "src" / "added.txt"
    added.write_text("thought better of\n")
    at_work.p4.run("add", str(added))
    retire(lab_workspace)
    restore(lab_workspace)
    at_work.p4.run("revert", "//...")
    added.unlink(missing_ok=True)
    for change in at_work.p4.run("changes", "-s", "pending", "-c", at_work.p4.client):
        at_work.p4.run("shelve", "-d", "-c", change["change"])
        at_work.p4.run("change", "-d", change["change"])
    before = contents_of(lab_workspace.path)

    operation = retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert opened_in(lab_workspace) == set()
    assert contents_of(lab_workspace.path) == before


def test_an_undo_has_nothing_of_a_retirement_that_was_refused(
    lab_workspace: Workspace,
    at_work: AtWork,
    at_the_last_moment: Callable[[Callable[[], None]], None],
) -> None:
    """Something is opened after the last check; later all goes back to the pin."""
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    pinned = perforce.files.have_list(lab_workspace.client_name)
    submit_from(at_work)
    at_the_last_moment(at_work.open_for_edit)
    assert retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE).state == "refused"
    at_work.p4.run("revert", "//...")
    at_work.p4.run("sync", f"//...@{lab_workspace.snapshot.change}")
    assert perforce.files.have_list(lab_workspace.client_name) == pinned

    retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)
    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert perforce.files.have_list(lab_workspace.client_name) == pinned


def test_purging_leaves_nothing_but_the_rescue(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.leave_an_untracked_file()
    retire(lab_workspace)

    workspace_purge(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)

    assert lab_workspace.state == Workspace.State.RETIRED
    assert left_behind(lab_workspace) == []
    assert (Path(Rescue.objects.get().directory) / "work.tar").exists()
    with pytest.raises(WorkspaceRetired):
        workspace_restore(by=lab_workspace.owner, workspace=lab_workspace)


def test_a_retirement_under_way_can_be_stopped(lab_workspace: Workspace) -> None:
    retirement = workspace_retire(by=lab_workspace.owner, workspace=lab_workspace)

    operation = restore(lab_workspace)

    retirement.refresh_from_db()
    assert retirement.state == Operation.State.CANCELED
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert lab_workspace.state == Workspace.State.READY
    assert (lab_workspace.path / "src" / "file3.txt").exists()


def test_a_retirement_that_failed_half_way_can_be_undone(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, settings: Settings
) -> None:
    at_work.open_for_edit()
    settings.STEP_GIVE_UP_SECONDS = 0
    lab.break_perforce({"command": "revert", "error": "not now"})
    retire(lab_workspace)
    assert lab_workspace.state == Workspace.State.FAILED
    lab.break_perforce()

    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert {action for _, action, _ in opened_in(lab_workspace)} == {"edit"}
    volume = registry.ontap(lab_workspace.site).get_volume(lab_workspace.volume_uuid)
    assert volume.export_policy == lab_workspace.site.export_policy


def test_what_a_killed_deletion_had_reverted_is_opened_again(
    lab_workspace: Workspace, at_work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work.open_for_edit()
    opened = opened_in(lab_workspace)

    def be_killed(self: object, name: str, **options: object) -> None:
        if name == lab_workspace.client_name:
            raise RuntimeError("killed")

    with monkeypatch.context() as killing:
        killing.setattr(Clients, "delete", be_killed)
        workspace_retire(
            by=lab_workspace.owner,
            workspace=lab_workspace,
            unsubmitted=Unsubmitted.RESCUE,
        )
        settle(lab_workspace)
    assert opened_in(lab_workspace) == set()

    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert opened_in(lab_workspace) == opened


@pytest.fixture
def came_back_in_part(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab, settings: Settings
) -> Callable[[str], None]:
    """Restore until a command of Perforce fails; src/file3.txt was opened."""

    def bring_back(command: str) -> None:
        at_work.open_for_edit()
        at_work.file.write_text("opened and changed\n")
        retire(lab_workspace)
        assert lab_workspace.state == Workspace.State.TRASHED, (
            lab_workspace.status_message
        )
        patience, settings.STEP_GIVE_UP_SECONDS = settings.STEP_GIVE_UP_SECONDS, 0.0
        lab.break_perforce({"command": command, "drop": "before"})
        restore(lab_workspace)
        lab.break_perforce()
        settings.STEP_GIVE_UP_SECONDS = patience
        assert lab_workspace.state == Workspace.State.FAILED
        assert not client_of(lab_workspace).is_whole
        assert lab_workspace.path.is_dir()

    return bring_back


@pytest.mark.parametrize("fails", ["edit", "sync"])
def test_what_was_done_in_a_workspace_that_came_back_in_part_is_not_lost(
    fails: str,
    came_back_in_part: Callable[[str], None],
    lab_workspace: Workspace,
    at_work: AtWork,
) -> None:
    """Before its files were opened again, or before its client knew of any."""
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    submit_from(at_work)
    have = perforce.files.have_list(lab_workspace.client_name)
    came_back_in_part(fails)
    at_work.leave_an_untracked_file()
    added = at_work.root / "src" / "added.txt"
    added.write_text("mine\n")
    at_work.p4.run("add", str(added))
    before = contents_of(lab_workspace.path)

    refused = retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)

    assert refused.state == Operation.State.REFUSED, refused.status_message
    counts = (refused.findings or {})["counts"]
    assert {kind: found["count"] for kind, found in counts.items()} == {
        "opened": 1,
        "shelved": 1,
        "changed": 1,
        "untracked": 1,
    }
    retire(lab_workspace)
    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message
    rescue = Rescue.objects.filter(workspace=lab_workspace).first()
    assert rescue is not None
    shelved = [path for shelf in rescue.shelves for path in shelf["files"]]
    assert sorted(path.rpartition("/")[2] for path in shelved) == [
        "added.txt",
        "file3.txt",
    ]
    with tarfile.open(Path(rescue.directory) / "work.tar") as archive:
        assert sorted(archive.getnames()) == ["src/file3.txt", "src/notes.txt"]
    restore(lab_workspace)
    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert contents_of(lab_workspace.path) == before
    assert {path for path, _, _ in opened_in(lab_workspace)} == set(shelved)
    assert perforce.files.have_list(lab_workspace.client_name) == have


def test_what_is_added_before_the_client_knows_of_files_does_not_hide_them(
    came_back_in_part: Callable[[str], None], lab_workspace: Workspace, at_work: AtWork
) -> None:
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    have = perforce.files.have_list(lab_workspace.client_name)
    came_back_in_part("sync")
    added = at_work.root / "src" / "added.txt"
    added.write_text("mine\n")
    at_work.p4.run("add", str(added))

    restore(lab_workspace)

    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert perforce.files.have_list(lab_workspace.client_name) == have
    assert len(opened_in(lab_workspace)) == 2


def test_what_came_back_in_part_can_be_discarded(
    came_back_in_part: Callable[[str], None], lab_workspace: Workspace, at_work: AtWork
) -> None:
    came_back_in_part("edit")
    at_work.leave_an_untracked_file()

    retire(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message
    record = Event.objects.get(workspace=lab_workspace, kind="work_discarded")
    assert "untracked" in record.data
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    rescue = Rescue.objects.filter(workspace=lab_workspace).first()
    assert rescue is not None
    assert rescue.shelves
    for shelf in rescue.shelves:
        assert perforce.shelves.list_files(shelf["change"])


def test_what_is_opened_after_a_check_that_found_nothing_is_rescued(
    lab_workspace: Workspace, at_work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_late(run: object) -> None:
        at_work.open_for_edit()
        at_work.file.write_text("written at the last moment\n")

    with monkeypatch.context() as racing:
        racing.setattr(retiring, "drop_stand_ins", be_late)
        operation = retire(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    rescue = Rescue.objects.get(workspace=lab_workspace)
    assert sum(len(shelf["files"]) for shelf in rescue.shelves) == 1
    restore(lab_workspace)
    assert {action for _, action, _ in opened_in(lab_workspace)} == {"edit"}


def test_what_is_done_after_a_late_rescue_that_failed_is_not_lost(
    lab_workspace: Workspace, at_work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workspace was given back, and nobody looked once more before it went."""

    def be_late(run: object) -> None:
        at_work.open_for_edit()
        (at_work.root / "src" / "late.txt").write_text("late\n")

    area = lab_workspace.site.rescue_root
    Site.objects.update(rescue_root="")
    with monkeypatch.context() as racing:
        racing.setattr(retiring, "drop_stand_ins", be_late)
        operation = retire(lab_workspace)
    assert operation.status_code == "no_rescue_area"
    at_work.leave_an_untracked_file()
    at_work.p4.run("revert", "-k", "//...")
    Site.objects.update(rescue_root=area)

    refused = retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)

    assert refused.state == Operation.State.REFUSED, refused.status_message
    retire(lab_workspace)
    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message
    rescue = Rescue.objects.with_work().first()
    assert rescue is not None
    with tarfile.open(Path(rescue.directory) / "work.tar") as archive:
        assert sorted(archive.getnames()) == ["src/late.txt", "src/notes.txt"]


def test_what_is_opened_while_the_client_is_deleted_is_rescued_with_the_rest(
    lab_workspace: Workspace,
    at_work: AtWork,
    at_the_last_moment: Callable[[Callable[[], None]], None],
) -> None:
    """Once after all was reverted, so that the deletion is refused and tried again."""
    at_work.open_for_edit()
    late = at_work.root / "src" / "file4.txt"
    before = opened_in(lab_workspace)
    at_the_last_moment(lambda: at_work.p4.run("edit", str(late)))

    operation = retire(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    rescue = Rescue.objects.get(workspace=lab_workspace)
    paths = {path for shelf in rescue.shelves for path in shelf["files"]}
    assert paths == {file["depot_file"] for file in rescue.reverted}
    assert len(paths) == 2
    restore(lab_workspace)
    assert opened_in(lab_workspace) > before
    assert {path for path, _, _ in opened_in(lab_workspace)} == paths


def test_what_is_opened_anew_while_the_client_is_deleted_is_rescued_as_it_is(
    lab_workspace: Workspace,
    at_work: AtWork,
    at_the_last_moment: Callable[[Callable[[], None]], None],
) -> None:
    def write() -> None:
        at_work.p4.run("edit", str(at_work.file))
        at_work.file.write_text("written at the last moment\n")

    at_work.open_for_edit()
    at_the_last_moment(write)

    operation = retire(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    shelves = Rescue.objects.get(workspace=lab_workspace).shelves
    said = [
        at_work.p4.run("print", "-q", f"{path}@={shelf['change']}")[-1]
        for shelf in shelves
        for path in shelf["files"]
    ]
    assert "written at the last moment\n" in said


def test_a_step_of_a_restoration_that_was_done_already_changes_nothing(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.open_for_edit()
    retire(lab_workspace)
    restoration = restore(lab_workspace)
    before, opened = contents_of(lab_workspace.path), opened_in(lab_workspace)

    for spec in RESTORE:
        perform_again(restoration.steps.get(name=spec.name))
        assert contents_of(lab_workspace.path) == before, spec.name
        assert opened_in(lab_workspace) == opened, spec.name


def test_without_a_rescue_area_nothing_that_needs_one_is_deleted(
    lab_workspace: Workspace, at_work: AtWork
) -> None:
    at_work.leave_an_untracked_file()
    Site.objects.update(rescue_root="")

    operation = retire(lab_workspace)

    assert operation.state == Operation.State.FAILED
    assert operation.status_code == "no_rescue_area"
    assert (lab_workspace.path / "src" / "notes.txt").exists()
    restore(lab_workspace)
    assert lab_workspace.state == Workspace.State.READY


def test_what_is_not_in_the_trash_is_neither_restored_nor_purged(
    lab_workspace: Workspace,
) -> None:
    with pytest.raises(NothingToRestore):
        workspace_restore(by=lab_workspace.owner, workspace=lab_workspace)
    with pytest.raises(NotInTrash):
        workspace_purge(by=lab_workspace.owner, workspace=lab_workspace)


@pytest.mark.integration
def test_a_half_purged_clone_is_not_said_to_be_in_the_trash(
    lab_workspace: Workspace, lab: Lab
) -> None:
    retire(lab_workspace)
    lab.break_perforce({"command": "*", "error": "not now"})
    workspace_purge(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)
    lab.break_perforce()
    assert lab_workspace.state == Workspace.State.FAILED
    assert (
        registry.ontap(lab_workspace.site).find_volume(lab_workspace.volume_name)
        is None
    )

    retire(lab_workspace)

    assert lab_workspace.state == Workspace.State.RETIRED
    assert left_behind(lab_workspace) == []


def test_a_purge_removes_what_a_killed_rescue_left(lab_workspace: Workspace) -> None:
    area = Path(lab_workspace.site.rescue_root) / lab_workspace.owner.username
    area.mkdir(exist_ok=True)
    tag = lab_workspace.tag.hex[:6]
    mine = f".{lab_workspace.name}-20260101T000000Z-{tag}0000.partial"
    others = f".{lab_workspace.name}-20260101T000000Z-0ther00000.partial"
    for name in (mine, others):
        (area / name).mkdir()
        (area / name / "work.tar").write_text("half of it")
    retire(lab_workspace)

    workspace_purge(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)

    assert lab_workspace.state == Workspace.State.RETIRED, lab_workspace.status_message
    assert not (area / mine).exists()
    assert (area / others / "work.tar").exists()


def test_a_ticket_that_ends_meanwhile_is_replaced_once(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab
) -> None:
    at_work.open_for_edit()
    opened = opened_in(lab_workspace)

    lab.break_perforce({"command": "shelve", "expire_tickets": True, "times": 1})
    operation = retire(lab_workspace)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message

    lab.break_perforce({"command": "edit", "expire_tickets": True, "times": 1})
    operation = restore(lab_workspace)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert opened_in(lab_workspace) == opened


def test_a_ticket_that_ends_while_a_locked_client_is_compared_is_replaced(
    lab_workspace: Workspace, at_work: AtWork, lab: Lab
) -> None:
    client = at_work.p4.fetch_client()
    client["Options"] = client["Options"].replace("unlocked", "locked")
    at_work.p4.save_client(client)

    lab.break_perforce({"command": "reconcile", "expire_tickets": True, "times": 1})
    operation = retire(lab_workspace, unsubmitted=Unsubmitted.REFUSE)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
