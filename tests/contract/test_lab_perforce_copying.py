"""Copies, undone changes and submitted shelves, as the official client sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    refused,
    warned,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    """A client with `from/a` of two revisions, `from/b` and a keyword file."""
    name = tmp_path.name
    made = workspace(server, tmp_path, name=f"ws-{name}", depot=f"//depot/{name}")
    made.write("from/k", "$Id$\n")
    made.p4.run("add", "-t", "text+k", "from/k")
    made.add({"from/a": "1\n", "from/b": "b\n"})
    made.edit("from/a", "2\n")
    return made


def heads(ws: Workspace, where: str = "...") -> dict[str, tuple[str, str]]:
    """Return action and revision of each file below a place."""
    return {
        file["depotFile"].removeprefix(f"{ws.depot}/"): (file["action"], file["rev"])
        for file in ws.p4.run("files", f"{ws.depot}/{where}")
    }


def content(ws: Workspace, name: str) -> str:
    return str(ws.p4.run("print", "-q", f"{ws.depot}/{name}")[-1])


# --- copy


def test_a_copy_makes_the_target_identical(ws: Workspace) -> None:
    ws.p4.run("copy", f"{ws.depot}/from/...", f"{ws.depot}/to/...")
    assert not (ws.root / "to/a").stat().st_mode & 0o222
    ws.submit()
    assert heads(ws, "to/...") == {
        f"to/{name}": ("branch", "1") for name in ("a", "b", "k")
    }
    assert content(ws, "to/k") == f"$Id: {ws.depot}/to/k#1 $\n"

    ws.edit("from/a", "3\n")
    ws.p4.run("delete", "from/b")
    ws.submit()
    opened = ws.p4.run("copy", f"{ws.depot}/from/...", f"{ws.depot}/to/...")
    assert {(f["depotFile"][-1], f["action"]) for f in opened} >= {
        ("a", "integrate"),
        ("b", "delete"),
    }
    ws.submit()
    assert content(ws, "to/a") == "3\n"
    assert heads(ws, "to/b")["to/b"] == ("delete", "2")
    assert {r["how"] for r in ws.p4.run("integrated", f"{ws.depot}/to/a")} == {
        "branch from",
        "copy from",
    }


def test_what_is_identical_is_not_copied(ws: Workspace) -> None:
    arguments = (f"{ws.depot}/from/a", f"{ws.depot}/to/a")
    assert ws.p4.run("copy", "-n", *arguments)[0]["action"] == "branch"
    assert ws.p4.run("opened") == []
    ws.p4.run("copy", *arguments)
    ws.submit()
    assert warned(ws.p4, "copy", *arguments) == [6532]


def test_a_copy_is_reverted_to_what_was_there(ws: Workspace) -> None:
    ws.add({"to/a": "mine\n"})
    ws.p4.run("copy", f"{ws.depot}/from/a", f"{ws.depot}/to/a")
    assert (ws.root / "to/a").read_text() == "2\n"
    ws.p4.run("revert", "//...")
    assert (ws.root / "to/a").read_text() == "mine\n"


def test_an_older_revision_is_copied_by_a_branch(ws: Workspace) -> None:
    view = [f"{ws.depot}/from/... {ws.depot}/to/..."]
    ws.p4.save_branch({"Branch": f"b-{ws.name}", "View": view})
    ws.p4.run("copy", f"{ws.depot}/from/a#1", f"{ws.depot}/to/a")
    ws.submit()
    ws.p4.run("copy", "-b", f"b-{ws.name}", f"{ws.depot}/to/a")
    ws.submit()
    assert content(ws, "to/a") == "2\n"
    assert refused(ws.p4, "copy", f"{ws.depot}/from/...") == 7198


# --- populate


def test_files_are_branched_in_one_step(ws: Workspace) -> None:
    arguments = (f"{ws.depot}/from/...", f"{ws.depot}/new/...")
    preview = ws.p4.run("populate", "-n", *arguments)
    assert [file["action"] for file in preview[:-1]] == ["branch"] * 3
    assert warned(ws.p4, "files", f"{ws.depot}/new/...") == [6519]

    said = ws.p4.run("populate", "-d", "in one step", *arguments)

    [change] = ws.p4.run("changes", "-m1", "-l", f"{ws.depot}/new/...")
    assert said == [f"3 files branched (change {change['change']})."]
    assert change["desc"] == "in one step"
    assert heads(ws, "new/...") == {
        f"new/{name}": ("branch", "1") for name in ("a", "b", "k")
    }
    assert content(ws, "new/k") == f"$Id: {ws.depot}/new/k#1 $\n"
    assert refused(ws.p4, "populate", *arguments) == 6822
    ws.p4.run("sync")
    assert ws.p4.run("reconcile", "-n") == []


def test_no_client_is_needed_to_populate(ws: Workspace, server: LabServer) -> None:
    p4 = server.connect(client="no-such-client")
    said = p4.run("populate", f"{ws.depot}/from/a", f"{ws.depot}/alone")
    assert said[0].startswith("1 files branched")


# --- undo


def test_a_change_is_undone(ws: Workspace) -> None:
    number = ws.p4.run("changes", "-m1", f"{ws.depot}/...")[0]["change"]
    opened = ws.p4.run("undo", f"@{number}")
    assert [(f["depotFile"][-1], f["action"]) for f in opened] == [("a", "edit")]
    assert (ws.root / "from/a").read_text() == "1\n"
    ws.submit()
    assert content(ws, "from/a") == "1\n"
    assert heads(ws)["from/a"] == ("edit", "3")


def test_what_was_added_is_deleted_and_what_was_deleted_is_added(
    ws: Workspace,
) -> None:
    ws.p4.run("undo", f"{ws.depot}/from/b")
    assert not (ws.root / "from/b").exists()
    ws.submit()
    assert heads(ws)["from/b"] == ("delete", "2")

    ws.p4.run("undo", f"{ws.depot}/from/b#2")
    assert (ws.root / "from/b").read_text() == "b\n"
    ws.submit()
    assert heads(ws)["from/b"] == ("add", "3")


def test_an_older_change_is_undone_with_a_resolve(ws: Workspace) -> None:
    lines = [f"{number}\n" for number in range(9)]
    ws.edit("from/a", "".join(lines))
    ws.edit("from/a", "".join(["first\n", *lines[1:]]))
    ws.edit("from/a", "".join(["first\n", *lines[1:-1], "last\n"]))
    ws.p4.run("undo", f"{ws.depot}/from/a#4")
    assert (ws.root / "from/a").read_text() == "".join(lines)
    ws.p4.run("sync")
    ws.p4.run("resolve", "-am")
    ws.submit()
    assert content(ws, "from/a") == "".join([*lines[:-1], "last\n"])


def test_a_preview_opens_nothing(ws: Workspace) -> None:
    assert ws.p4.run("undo", "-n", f"{ws.depot}/from/a#2")[0]["action"] == "edit"
    assert ws.p4.run("opened") == []
    assert refused(ws.p4, "undo", f"@{ws.name}") == 7198


# --- integrate


@pytest.mark.parametrize("option", ["-Di", "-Ds", "-Dt", "-Dist", "-d"])
def test_a_deleted_target_is_branched_again(ws: Workspace, option: str) -> None:
    arguments = (f"{ws.depot}/from/a", f"{ws.depot}/to/a")
    ws.p4.run("integrate", *arguments)
    ws.submit()
    ws.p4.run("delete", "to/a")
    ws.submit()
    ws.edit("from/a", "3\n")

    ws.p4.run("integrate", option, *arguments)
    ws.submit()
    assert content(ws, "to/a") == "3\n"
    assert refused(ws.p4, "integrate", "-Dx", *arguments) == 7198


# --- submit -e


def shelve(ws: Workspace) -> str:
    ws.p4.run("edit", "from/a", "from/k")
    ws.write("from/a", "shelved\n")
    form = ws.p4.fetch_change()
    form["Description"] = "a shelf"
    number = str(ws.p4.save_change(form)[0]).split()[1]
    ws.p4.run("shelve", "-c", number)
    return number


def test_a_shelf_is_submitted_from_any_client(ws: Workspace, server: LabServer) -> None:
    number = shelve(ws)
    ws.p4.run("revert", "//...")
    elsewhere = server.connect(client="no-such-client")

    said = elsewhere.run("submit", "-e", number)

    assert "submittedChange" in said[-1]
    assert content(ws, "from/a") == "shelved\n"
    assert content(ws, "from/k") == f"$Id: {ws.depot}/from/k#2 $\n"
    assert (ws.root / "from/a").read_text() == "2\n"
    assert ws.p4.run("changes", "-s", "shelved", "-c", ws.name) == []


def test_a_shelf_that_cannot_be_submitted(ws: Workspace, server: LabServer) -> None:
    number = shelve(ws)
    assert refused(ws.p4, "submit", "-e", number) == 7809, "its files are open"
    ws.p4.run("revert", "//...")
    person = server.person(f"p-{ws.name}")
    assert refused(person, "submit", "-e", number) == 6173
    ws.edit("from/a", "somebody else\n")
    assert refused(ws.p4, "submit", "-e", number) == 7809
    assert any("must resolve" in str(message) for message in ws.p4.messages)
    ws.p4.run("shelve", "-d", "-c", number)
    assert refused(ws.p4, "submit", "-e", number) == 7808
