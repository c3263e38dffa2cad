"""Shelves and lost have lists on the lab, by the official client."""

from __future__ import annotations

import pytest

from tests.support.lab_perforce import (
    BASE,
    LabServer,
    Workspace,
    refused,
    warned,
)

pytestmark = pytest.mark.timeout(90, method="thread")


def shelf(ws: Workspace) -> str:
    """Shelve what is open in the default change; return the number."""
    form = ws.p4.fetch_change()
    form["Description"] = "shelf"
    number = str(ws.p4.save_change(form)[0].split()[1])
    ws.p4.run("shelve", "-c", number)
    return number


def actions(ws: Workspace) -> dict[str, str]:
    """Return what is open, by name."""
    return {
        x["depotFile"].removeprefix(f"{ws.depot}/"): x["action"]
        for x in ws.p4.run("opened")
    }


def test_every_action_comes_to_another_client(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.write("file", "edited\n")
    one.p4.run("delete", "binary")
    one.write("new", "new\n")
    one.p4.run("add", "new")
    number = shelf(one)

    opened = two.p4.run("unshelve", "-s", number)

    assert {x["action"] for x in opened} == {"edit", "delete", "add"}
    assert actions(two) == {"file": "edit", "binary": "delete", "new": "add"}
    assert two.tree() == {"file": b"edited\n", "new": b"new\n"}
    assert actions(one) == actions(two)
    two.submit()
    assert [x["depotFile"].rpartition("/")[2] for x in two.p4.run("have")] == [
        "file",
        "new",
    ]


def test_a_shelved_move_stays_one(pair: tuple[Workspace, Workspace]) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.p4.run("move", "file", "name")
    number = shelf(one)

    two.p4.run("unshelve", "-s", number)

    assert actions(two) == {"file": "move/delete", "name": "move/add"}
    assert set(two.tree()) == {"binary", "name"}
    two.submit()
    (log,) = two.p4.run_filelog(f"{two.depot}/name")
    assert log.revisions[0].integrations[0].how == "moved from"


def test_half_a_shelved_move_is_an_add(pair: tuple[Workspace, Workspace]) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.p4.run("move", "file", "name")
    number = shelf(one)

    two.p4.run("unshelve", "-s", number, f"{two.depot}/name")

    assert actions(two) == {"name": "add"}


def test_an_unshelve_over_an_edit_is_resolved(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.write("file", BASE.replace("1", "one"))
    number = shelf(one)
    two.p4.run("edit", "file")
    two.write("file", BASE.replace("5", "five"))

    two.p4.run("unshelve", "-s", number)

    assert two.tree()["file"] == BASE.replace("5", "five").encode()
    assert refused(two.p4, "submit", "-d", "too early") == 7210
    two.p4.run("resolve", "-am")
    assert two.tree()["file"] == b"one\n2\n3\n4\nfive\n"
    change = two.p4.run("opened")[0]["change"]
    two.p4.run("submit", "-c", change)


def test_an_unshelved_add_of_what_exists_now_is_an_edit(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    one.write("new", "mine\n")
    one.p4.run("add", "new")
    number = shelf(one)
    two.add({"new": "theirs\n"})
    one.p4.run("revert", "-k", "new")
    (one.root / "new").unlink()

    one.p4.run("unshelve", "-s", number)

    assert actions(one) == {"new": "edit"}
    one.p4.run("resolve", "-ay")
    one.submit()
    assert one.p4.run("print", "-q", f"{one.depot}/new")[-1] == "mine\n"


def test_an_unshelved_edit_of_what_is_gone_is_refused(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    number = shelf(one)
    one.p4.run("revert", "file")
    two.p4.run("delete", "file")
    two.submit()

    one.p4.run("unshelve", "-s", number)

    assert [m.msgid for m in one.p4.messages] == [6665]
    assert actions(one) == {}


def test_a_writable_file_is_not_overwritten_by_an_unshelve(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.write("file", "shelved\n")
    number = shelf(one)
    (two.root / "file").chmod(0o644)
    two.write("file", "precious\n")

    assert refused(two.p4, "unshelve", "-s", number) == 8196
    assert two.tree()["file"] == b"precious\n"
    assert actions(two) == {}
    two.p4.run("unshelve", "-f", "-s", number)
    assert two.tree()["file"] == b"shelved\n"


def test_a_shelf_is_changed_by_its_owner_and_deleted_by_administrators(
    pair: tuple[Workspace, Workspace], server: LabServer
) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    number = shelf(one)
    eve = server.person("eve")

    assert refused(one.p4, "shelve", "-c", number) == 6656
    assert one.p4.run("shelve", "-f", "-c", number)[-1] == (
        f"Change {number} files shelved."
    )
    assert refused(two.p4, "shelve", "-d", "-c", number) == 6172
    assert refused(eve, "shelve", "-d", "-c", number) == 6173
    assert refused(eve, "shelve", "-d", "-f", "-c", number) == 6185
    assert two.p4.run("shelve", "-d", "-f", "-c", number) == [
        f"Shelved change {number} deleted."
    ]
    assert refused(one.p4, "shelve", "-d", "-c", number) == 7579
    assert warned(two.p4, "unshelve", "-s", number) == [6660]


# --- have lists that were lost


def test_a_lost_have_list_is_rebuilt_from_content(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, two = pair
    two.add({"later": "first\n", "gone": "x\n"})
    two.edit("later", "second\n")
    one.p4.run("sync", f"{one.depot}/...#1")
    (one.root / "gone").unlink()
    (one.root / "binary").chmod(0o644)
    one.write("binary", b"changed")
    one.p4.run("sync", "-k", "#0")
    assert one.p4.run("have") == []

    shown = one.p4.run("reconcile", "-k", "-n")
    assert one.p4.run("have") == []
    found = one.p4.run("reconcile", "-k")

    assert found == shown
    had = {x["depotFile"].rpartition("/")[2]: x["haveRev"] for x in one.p4.run("have")}
    assert had == {"file": "1", "later": "1"}
    assert warned(one.p4, "reconcile", "-k") == [6827]


def test_reconcile_is_about_the_current_directory(
    pair: tuple[Workspace, Workspace],
) -> None:
    one, _ = pair
    one.write("here/new")
    one.write("elsewhere/new")
    one.p4.cwd = str(one.root / "here")

    assert [x["depotFile"] for x in one.p4.run("reconcile", "-n")] == [
        f"{one.depot}/here/new"
    ]
