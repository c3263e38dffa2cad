"""Opened work into shelves, clients deleted after it, and all of it brought back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.gateways.errors import Busy, InUse, NotFound, Unreachable
from provisioner.gateways.hosts.inventory import opened_before
from provisioner.gateways.perforce.errors import (
    ClientHasOpenedFiles,
    ClientHasPendingChanges,
    ClientHasShelves,
    ClientIsLocked,
    ClientOfOtherServer,
    NotPermitted,
)
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import (
    OpenedFile,
    ReopenReport,
    Shelf,
    ShelveReport,
)
from tests.support.perforce_desk import Desk
from tests.support.perforce_scene import PerforceScene, ignore_progress

TREE: dict[str, bytes | Path | None] = {
    "edited": b"1\n",
    "deleted": b"2\n",
    "moved": b"3\n",
    "other": b"4\n",
    "link": Path("edited"),
    "odd @#%*é": b"5\n",
}


@pytest.fixture
def desk(perforce: PerforceScene) -> Desk:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    perforce.gateway.files.sync(spec.name, change=change, on_progress=ignore_progress)
    return Desk(scene=perforce, spec=spec, change=change)


def by_was(report: ShelveReport) -> Mapping[str, Shelf]:
    return {shelf.was: shelf for shelf in report.shelves}


# --- tickets


def test_a_ticket_lets_us_act_as_a_user(perforce: PerforceScene) -> None:
    user = perforce.account.user

    ticket = perforce.gateway.user_ticket(user)

    assert ticket
    as_user = PerforceGateway(replace(perforce.account, password=ticket))
    as_user.check_login()


def test_there_is_no_ticket_of_somebody_unknown(perforce: PerforceScene) -> None:
    assert perforce.gateway.user_ticket(f"nobody-{perforce.tag}") is None


def test_without_super_there_is_no_ticket(lab_perforce: PerforceScene) -> None:
    person = lab_perforce.person("plain")

    assert person.user_ticket(lab_perforce.account.user) is None


# --- what is opened


def test_an_opened_file_is_told_with_its_type_and_revision(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    desk.add("new", b"new\n")
    desk.move("moved", "renamed")

    told = {file.depot_file: file for file in desk.opened()}

    edited = told[desk.path("edited")]
    assert (edited.type, edited.revision, edited.moved_file) == ("text", 1, "")
    assert told[desk.path("new")].revision == 0
    assert told[desk.path("renamed")].moved_file == desk.path("moved")
    assert told[desk.path("moved")].moved_file == desk.path("renamed")
    assert told[desk.path("renamed")].revision == 0


def test_pending_changes_come_with_description_and_count(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))

    [pending] = desk.scene.gateway.changes.list_pending(desk.spec.name)

    assert (pending.change, pending.description) == (change, "Work.")
    assert (pending.files, pending.is_shelved) == (1, False)


# --- shelving


def test_a_numbered_change_becomes_its_own_shelf(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))

    report = desk.shelve()

    [shelf] = report.shelves
    assert (shelf.change, shelf.was, shelf.made_by_us) == (change, str(change), False)
    assert shelf.files == (desk.path("edited"),)
    assert report.not_shelved == ()
    assert desk.shelved(change) == {"edited": "edit"}
    assert [file.change for file in desk.opened()] == [str(change)]


def test_the_default_change_is_shelved_in_one_of_ours(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    desk.add("new", b"new\n")
    desk.p4("delete", desk.path("deleted"))
    desk.move("moved", "renamed")
    before = desk.tree()

    report = desk.shelve()

    [shelf] = report.shelves
    assert (shelf.was, shelf.made_by_us, report.not_shelved) == ("default", True, ())
    assert desk.shelved(shelf.change) == {
        "edited": "edit",
        "new": "add",
        "deleted": "delete",
        "moved": "move/delete",
        "renamed": "move/add",
    }
    assert desk.printed("edited", change=shelf.change) == b"mine\n"
    [pending] = desk.scene.gateway.changes.list_pending(desk.spec.name)
    assert pending.description.startswith(
        "Rescued by Cloneyard from main-1 (change default): "
    )
    assert desk.tree() == before


def test_a_shelf_that_says_something_else_is_not_overwritten(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"first\n", change=str(change))
    desk.p4("shelve", "-c", str(change))
    desk.write("edited", b"second\n")

    report = desk.shelve()

    [shelf] = report.shelves
    assert shelf.change != change
    assert (shelf.was, shelf.made_by_us) == (str(change), True)
    assert desk.printed("edited", change=change) == b"first\n"
    assert desk.printed("edited", change=shelf.change) == b"second\n"
    descriptions = {
        pending.change: pending.description
        for pending in desk.scene.gateway.changes.list_pending(desk.spec.name)
    }
    assert descriptions[shelf.change] == (
        f"Rescued by Cloneyard from main-1 (change {change}): Work."
    )


def test_a_shelf_that_says_the_same_is_enough(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))
    desk.p4("shelve", "-c", str(change))
    desk.add("new", b"new\n", change=str(change))

    report = desk.shelve()

    [shelf] = report.shelves
    assert (shelf.change, shelf.made_by_us) == (change, False)
    assert desk.shelved(change) == {"edited": "edit", "new": "add"}


def test_shelving_again_makes_nothing_new(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))
    desk.add("new", b"new\n")
    desk.p4("edit", desk.path("link"))
    first = desk.shelve()

    opened = opened_before(desk.opened(), [first])
    again = desk.shelve()

    assert again == first
    assert opened_before(desk.opened(), [again]) == opened
    assert {file.change for file in opened} == {str(change), "default"}
    assert len(desk.scene.gateway.changes.list_pending(desk.spec.name)) == 2


def test_what_was_changed_since_is_shelved_beside_it(desk: Desk) -> None:
    desk.edit("edited", b"first\n")
    first = desk.shelve().shelves[0]
    desk.write("edited", b"second\n")

    [second] = desk.shelve().shelves

    assert second.change != first.change
    assert (second.was, second.made_by_us) == ("default", True)
    assert desk.printed("edited", change=first.change) == b"first\n"
    assert desk.printed("edited", change=second.change) == b"second\n"


def test_what_cannot_be_read_is_named_and_the_rest_is_shelved(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    desk.p4("edit", desk.path("other"))
    (desk.root / "other").unlink()
    desk.move("moved", "renamed")
    (desk.root / "renamed").unlink()
    desk.p4("edit", desk.path("deleted"))
    (desk.root / "deleted").unlink()
    (desk.root / "deleted").symlink_to("edited")

    report = desk.shelve()

    assert [shelf.files for shelf in report.shelves] == [(desk.path("edited"),)]
    reasons = {item.depot_file: item.reason for item in report.not_shelved}
    assert set(reasons) == {
        desk.path(name) for name in ("other", "moved", "renamed", "deleted")
    }
    assert "No such file" in reasons[desk.path("other")]
    assert "another file type" in reasons[desk.path("deleted")]
    assert "other half" in reasons[desk.path("moved")]
    still = {file.depot_file: file.change for file in desk.opened()}
    assert still[desk.path("other")] == "default"


def test_what_the_server_refuses_is_named_with_its_sentence(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    desk.edit("other", b"mine too\n")
    desk.scene.submit({"other": b"theirs\n"})
    desk.p4("sync", f"{desk.path('other')}#2")

    report = desk.shelve()

    assert [shelf.files for shelf in report.shelves] == [(desk.path("edited"),)]
    [item] = report.not_shelved
    assert item.depot_file == desk.path("other")
    assert "must resolve" in item.reason


def test_odd_names_and_links_are_shelved(desk: Desk) -> None:
    desk.edit("odd @#%*é", b"mine\n")
    desk.p4("edit", desk.path("link"))
    (desk.root / "link").unlink()
    (desk.root / "link").symlink_to("elsewhere")

    report = desk.shelve()

    assert report.not_shelved == ()
    [shelf] = report.shelves
    assert set(shelf.files) == {desk.path("odd @#%*é"), desk.path("link")}


def test_files_that_others_opened_are_left_to_them(lab_perforce: PerforceScene) -> None:
    change = lab_perforce.submit(TREE)
    spec = lab_perforce.make_client()
    lab_perforce.gateway.files.sync(
        spec.name, change=change, on_progress=ignore_progress
    )
    desk = Desk(scene=lab_perforce, spec=spec, change=change)
    desk.edit("edited", b"mine\n")
    lab_perforce.person("bob")
    ticket = lab_perforce.gateway.user_ticket("bob")
    assert ticket
    bobs = replace(lab_perforce.account, user="bob", password=ticket)
    with lab_perforce.at_the_shell_as(bobs, spec.name) as shell:
        shell.run("edit", desk.path("other"))

    mine, his = (
        gateway.shelves.shelve_opened(spec.name, workspace="main-1")
        for gateway in (lab_perforce.gateway, PerforceGateway(bobs))
    )

    assert [shelf.files for shelf in mine.shelves] == [(desk.path("edited"),)]
    assert [shelf.files for shelf in his.shelves] == [(desk.path("other"),)]
    assert mine.not_shelved == his.not_shelved == ()


# --- deleting the client


def test_each_refusal_to_delete_a_client_has_its_own_class(desk: Desk) -> None:
    gateway, name = desk.scene.gateway, desk.spec.name
    change = desk.scene.pending_change(name)

    for keep_shelves in (False, True):
        with pytest.raises(ClientHasPendingChanges):
            gateway.clients.delete(name, keep_shelves=keep_shelves)
    desk.edit("edited", b"mine\n", change=str(change))
    for keep_shelves in (False, True):
        with pytest.raises(ClientHasOpenedFiles):
            gateway.clients.delete(name, keep_shelves=keep_shelves)
    desk.p4("shelve", "-c", str(change))
    gateway.changes.revert_server_side(name)
    with pytest.raises(ClientHasShelves) as caught:
        gateway.clients.delete(name)
    assert isinstance(caught.value, InUse)


def test_a_deleted_client_leaves_its_shelves(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    [shelf] = desk.shelve().shelves
    desk.scene.gateway.changes.revert_server_side(desk.spec.name)

    desk.scene.gateway.clients.delete(desk.spec.name, keep_shelves=True)
    desk.scene.gateway.clients.delete(desk.spec.name, keep_shelves=True)

    assert desk.scene.gateway.clients.find(desk.spec.name) is None
    assert desk.shelved(shelf.change) == {"edited": "edit"}
    desk.scene.gateway.changes.delete_pending(shelf.change, delete_shelf=True)


def test_a_locked_client_is_deleted_once_its_work_is_safe(desk: Desk) -> None:
    locked = desk.spec.options.replace("unlocked", "locked")
    desk.scene.gateway.clients.save(replace(desk.spec, options=locked))

    with pytest.raises(ClientIsLocked):
        desk.scene.gateway.clients.delete(desk.spec.name)
    desk.scene.gateway.clients.delete(desk.spec.name, keep_shelves=True)

    assert desk.scene.gateway.clients.find(desk.spec.name) is None


def test_a_client_that_was_changed_since_the_check_stays(desk: Desk) -> None:
    gateway = desk.scene.gateway
    seen = gateway.clients.find(desk.spec.name)
    assert seen is not None
    gateway.clients.save(replace(seen, description="Restored, and at work."))

    with pytest.raises(Busy, match="was changed meanwhile"):
        gateway.clients.delete(desk.spec.name, keep_shelves=True, as_seen=seen)
    with pytest.raises(Busy):
        gateway.clients.delete(desk.spec.name, as_seen=seen)

    now = gateway.clients.find(desk.spec.name)
    assert now is not None
    for _ in range(2):
        gateway.clients.delete(desk.spec.name, as_seen=now)
    assert gateway.clients.find(desk.spec.name) is None


def test_only_administrators_delete_by_force(lab_perforce: PerforceScene) -> None:
    spec = lab_perforce.make_client()

    with pytest.raises(NotPermitted):
        lab_perforce.person("plain").clients.delete(spec.name, keep_shelves=True)


def test_a_client_of_another_server_is_deleted_where_it_is_named(
    lab_perforce: PerforceScene,
) -> None:
    spec = lab_perforce.make_client()
    gateway = lab_perforce.gateway
    with lab_perforce.at_the_shell(spec.name) as shell:
        [form] = shell.run("client", "-o").records
        lines = "".join(f"\t{line}\n" for line in form["View"])
        text = f"Client:\t{spec.name}\n\nRoot:\t{spec.root}\n\nServerID:\tedge-2\n"
        shell.run("client", "-i", text=f"{text}\nView:\n{lines}")

    found = gateway.clients.find(spec.name)
    assert found is not None
    assert found.server_id == "edge-2"
    for keep_shelves in (False, True):
        with pytest.raises(ClientOfOtherServer):
            gateway.clients.delete(spec.name, keep_shelves=keep_shelves)
    gateway.clients.delete(spec.name, keep_shelves=True, server_id="edge-2")
    assert gateway.clients.find(spec.name) is None


def test_a_client_that_bob_locked_to_his_host_is_rescued_as_bob(
    lab_perforce: PerforceScene,
) -> None:
    change = lab_perforce.submit(TREE)
    spec = lab_perforce.make_client()
    gateway = lab_perforce.gateway
    gateway.files.sync(spec.name, change=change, on_progress=ignore_progress)
    desk = Desk(scene=lab_perforce, spec=spec, change=change)
    lab_perforce.person("bob")
    bob = replace(
        lab_perforce.account,
        user="bob",
        password=gateway.user_ticket("bob") or "",
        host="bobs-laptop",
    )
    with lab_perforce.at_the_shell_as(bob, spec.name) as shell:
        shell.run("edit", desk.path("edited"))
    desk.write("edited", b"bob's\n")
    locked = replace(
        spec,
        owner="bob",
        host=bob.host,
        options=spec.options.replace("unlocked", "locked"),
    )
    gateway.clients.save(locked)

    with pytest.raises(ClientIsLocked):
        PerforceGateway(
            replace(lab_perforce.account, host=bob.host)
        ).files.reconcile_preview(spec.name, untracked=False)
    report = PerforceGateway(bob).shelves.shelve_opened(spec.name, workspace="main-1")
    gateway.changes.revert_server_side(spec.name)
    gateway.clients.delete(spec.name, keep_shelves=True)

    [shelf] = report.shelves
    assert desk.printed("edited", change=shelf.change) == b"bob's\n"
    gateway.changes.delete_pending(shelf.change, delete_shelf=True)


# --- bringing it back


def retired(desk: Desk) -> tuple[list[OpenedFile], ShelveReport, dict[str, str]]:
    """Take the client away as a retirement does, leaving the files."""
    gateway, name = desk.scene.gateway, desk.spec.name
    opened = gateway.changes.list_opened(name)
    descriptions = {
        str(pending.change): pending.description
        for pending in gateway.changes.list_pending(name)
    }
    report = gateway.shelves.shelve_opened(name, workspace="main-1")
    if opened:
        gateway.changes.revert_server_side(name)
    for pending in gateway.changes.list_pending(name):
        if not pending.is_shelved:
            gateway.changes.delete_pending(pending.change, delete_shelf=False)
    gateway.clients.delete(name, keep_shelves=True)
    return opened, report, descriptions


def restored(
    desk: Desk,
    opened: list[OpenedFile],
    report: ShelveReport,
    descriptions: dict[str, str],
) -> ReopenReport:
    gateway = desk.scene.gateway
    gateway.clients.save(desk.spec)
    gateway.files.flush(desk.spec.name, change=desk.change)
    return gateway.shelves.reopen(
        desk.spec.name, opened, descriptions=descriptions, shelves=report.shelves
    )


def state(files: list[OpenedFile]) -> dict[str, tuple[str, str, str, int, str]]:
    return {
        f.depot_file: (f.action, f.change, f.type, f.revision, f.moved_file)
        for f in files
    }


def test_opened_files_come_back_as_they_were(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))
    desk.p4("reopen", "-t", "binary", desk.path("edited"))
    desk.add("new @", b"new\n")
    desk.p4("delete", desk.path("deleted"))
    desk.move("moved", "renamed")
    desk.write("renamed", b"renamed\n")
    desk.p4("edit", desk.path("odd @#%*é"))
    opened, files = state(desk.opened()), desk.tree()

    report = restored(desk, *retired(desk))

    assert report.not_opened == ()
    assert report.changes == {}
    assert set(report.opened) == set(opened)
    assert state(desk.opened()) == opened
    assert desk.tree() == files


def test_a_change_that_is_gone_is_made_anew(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.p4("edit", "-c", str(change), desk.path("edited"))
    (desk.root / "edited").unlink()
    kept = retired(desk)

    report = restored(desk, *kept)
    again = restored(desk, *kept)

    assert report.not_opened == again.not_opened == ()
    new = report.changes[str(change)]
    assert again.changes == report.changes
    assert [file.change for file in desk.opened()] == [new]
    [pending] = desk.scene.gateway.changes.list_pending(desk.spec.name)
    assert (str(pending.change), pending.description) == (new, "Work.")


def test_what_only_a_shelf_can_tell_comes_out_of_it(desk: Desk) -> None:
    desk.p4("integrate", desk.path("edited"), desk.path("branched"))
    opened, files = state(desk.opened()), desk.tree()
    assert opened[desk.path("branched")][0] == "branch"

    report = restored(desk, *retired(desk))

    assert report.not_opened == ()
    assert state(desk.opened()) == opened
    assert desk.tree() == files


def test_a_file_that_another_client_holds_alone_is_named(desk: Desk) -> None:
    desk.p4("edit", "-t", "text+l", desk.path("edited"))
    kept = retired(desk)
    other = desk.scene.make_client("other")
    desk.scene.gateway.files.flush(other.name, change=desk.change)
    with desk.scene.at_the_shell(other.name) as shell:
        shell.run("edit", "-k", "-t", "text+l", desk.path("edited"))

    report = restored(desk, *kept)

    [item] = report.not_opened
    assert item.depot_file == desk.path("edited")
    assert "exclusive" in item.reason


def test_unshelving_leaves_what_lies_on_disk(desk: Desk) -> None:
    desk.edit("edited", b"shelved\n")
    desk.p4("delete", desk.path("deleted"))
    [shelf] = desk.shelve().shelves
    desk.scene.gateway.changes.revert_server_side(desk.spec.name)
    desk.write("edited", b"newer\n")
    desk.write("deleted", b"again\n")
    before = desk.tree()

    report = desk.scene.gateway.shelves.unshelve(
        desk.spec.name,
        change=shelf.change,
        into=str(shelf.change),
        files=shelf.files,
    )

    assert set(report.opened) == {desk.path("edited"), desk.path("deleted")}
    assert report.not_opened == ()
    assert desk.tree() == before
    assert {(f.action, f.change) for f in desk.opened()} == {
        ("edit", str(shelf.change)),
        ("delete", str(shelf.change)),
    }


def test_unshelving_after_a_kill_puts_back_what_was_put_aside(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    [shelf] = desk.shelve().shelves
    desk.scene.gateway.changes.revert_server_side(desk.spec.name)
    desk.write(".edited.cloneyard-kept", b"newest\n")

    desk.scene.gateway.shelves.unshelve(
        desk.spec.name, change=shelf.change, into="default", files=shelf.files
    )

    assert (desk.root / "edited").read_bytes() == b"newest\n"
    assert not (desk.root / ".edited.cloneyard-kept").exists()


def test_unshelving_leaves_opened_files_alone(desk: Desk) -> None:
    desk.edit("edited", b"mine\n")
    [shelf] = desk.shelve().shelves

    report = desk.scene.gateway.shelves.unshelve(
        desk.spec.name, change=shelf.change, into="default", files=shelf.files
    )

    assert report.opened == ()
    assert report.not_opened[0].reason == "It is opened already."


# --- have lists


def test_single_files_are_flushed_to_their_revisions(desk: Desk) -> None:
    change = desk.scene.submit({"edited": b"newer\n", "other": b"newer\n"})
    name, gateway = desk.spec.name, desk.scene.gateway
    gateway.files.flush(name, change=change)

    gateway.files.flush_to(name, [(desk.path("edited"), 1), (desk.path("link"), 0)])

    had = desk.scene.had(name)
    assert len(had) == len(TREE) - 1
    assert had[desk.path("edited")] == 1
    assert had[desk.path("other")] == 2
    assert desk.path("link") not in had


def test_a_have_list_comes_back_from_its_differences(desk: Desk) -> None:
    name, gateway = desk.spec.name, desk.scene.gateway
    newer = desk.scene.submit({"edited": b"newer\n", "later": b"new\n", "link": None})
    desk.p4("sync", f"{desk.path('edited')}@{newer}", f"{desk.path('later')}@{newer}")
    desk.p4("sync", f"{desk.path('deleted')}#none")
    desk.edit("other", b"mine\n")
    desk.add("new", b"new\n")
    before = desk.scene.had(name)

    differences = gateway.files.have_differences(name, change=desk.change)

    assert dict(differences) == {
        desk.path("edited"): 2,
        desk.path("later"): 1,
        desk.path("deleted"): 0,
        desk.path("other"): 1,
        desk.path("new"): 0,
    }
    gateway.changes.revert_server_side(name)
    gateway.clients.delete(name)
    gateway.clients.save(desk.spec)
    gateway.files.flush(name, change=desk.change)
    gateway.files.flush_to(name, differences)
    assert desk.scene.had(name) == before


def test_shelves_and_have_lists_of_what_is_not_there(perforce: PerforceScene) -> None:
    with pytest.raises(NotFound):
        perforce.gateway.files.have_list("nobody-has-this")
    with pytest.raises(NotFound):
        perforce.gateway.shelves.shelve_opened("nobody-has-this", workspace="main-1")


# --- lost replies


@pytest.fixture
def lab_desk(lab_perforce: PerforceScene) -> Desk:
    change = lab_perforce.submit(TREE)
    spec = lab_perforce.make_client()
    lab_perforce.gateway.files.sync(
        spec.name, change=change, on_progress=ignore_progress
    )
    return Desk(scene=lab_perforce, spec=spec, change=change)


def busy_desk(desk: Desk) -> None:
    change = desk.scene.pending_change(desk.spec.name)
    desk.edit("edited", b"mine\n", change=str(change))
    desk.p4("reopen", "-t", "binary", desk.path("edited"))
    desk.add("new", b"new\n")
    desk.p4("delete", desk.path("deleted"))
    desk.move("moved", "renamed")
    desk.p4("integrate", desk.path("other"), desk.path("branched"))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("command", ["change", "reopen", "shelve", "describe"])
def test_a_lost_reply_while_shelving_makes_nothing_twice(
    lab_desk: Desk, command: str, when: str
) -> None:
    busy_desk(lab_desk)
    lab_desk.scene.set_faults({"command": command, "drop": when, "times": 1})

    with pytest.raises(Unreachable):
        lab_desk.shelve()
    report = lab_desk.shelve()

    assert report.not_shelved == ()
    shelved = [path for shelf in report.shelves for path in shelf.files]
    assert sorted(shelved) == sorted(file.depot_file for file in lab_desk.opened())
    assert {shelf.was for shelf in report.shelves} > {"default"}
    assert len(lab_desk.scene.gateway.changes.list_pending(lab_desk.spec.name)) == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("command", ["edit", "add", "delete", "move", "unshelve"])
def test_a_lost_reply_while_opening_again_is_made_good(
    lab_desk: Desk, command: str, when: str
) -> None:
    busy_desk(lab_desk)
    opened, files = state(lab_desk.opened()), lab_desk.tree()
    kept = retired(lab_desk)
    lab_desk.scene.set_faults({"command": command, "drop": when, "times": 1})

    with pytest.raises(Unreachable):
        restored(lab_desk, *kept)
    report = restored(lab_desk, *kept)

    assert report.not_opened == ()
    assert state(lab_desk.opened()) == opened
    assert lab_desk.tree() == files
