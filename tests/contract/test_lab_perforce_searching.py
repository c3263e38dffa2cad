"""grep, annotate, verify and help, as the official client sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    refused,
    shelved,
    warned,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    """A client with `a` of three revisions."""
    name = tmp_path.name
    made = workspace(server, tmp_path, name=f"ws-{name}", depot=f"//depot/{name}")
    made.add({"a": "one\ntwo\nthree\n", "bin": bytes(range(256))})
    made.edit("a", "one\n2\nthree\n")
    made.edit("a", "one\n2\nthree\nFour\n")
    return made


def lines(ws: Workspace, *command: str) -> list[str]:
    said: list[str] = ws.p4.run(*command, tagged=False)
    return said


# --- grep


def test_lines_that_match(ws: Workspace) -> None:
    found = ws.p4.run("grep", "-n", "-e", "t.*e", f"{ws.depot}/...")
    assert [(f["depotFile"], f["rev"], f["line"], f["matchedLine"]) for f in found] == [
        (f"{ws.depot}/a", "3", "3", "three")
    ]
    assert lines(ws, "grep", "-e", "^o", "a") == [f"{ws.depot}/a#3:one"]
    assert lines(ws, "grep", "-n", "-i", "-e", "FOUR", "a") == [
        f"{ws.depot}/a#3:4:Four"
    ]
    assert lines(ws, "grep", "-e", "FOUR", "a") == []
    assert lines(ws, "grep", "-v", "-e", "e", "a") == [
        f"{ws.depot}/a#3:2",
        f"{ws.depot}/a#3:Four",
    ]


def test_lines_around_those_that_match(ws: Workspace) -> None:
    assert lines(ws, "grep", "-C", "1", "-e", "2", "a") == [
        f"{ws.depot}/a#3-one",
        f"{ws.depot}/a#3:2",
        f"{ws.depot}/a#3-three",
    ]
    found = ws.p4.run("grep", "-A", "1", "-e", "2", "a")
    assert [line["type"] for line in found] == ["match", "after"]


def test_files_that_match(ws: Workspace) -> None:
    assert lines(ws, "grep", "-l", "-e", "one", f"{ws.depot}/...") == [
        f"{ws.depot}/a#3"
    ]
    assert lines(ws, "grep", "-L", "-e", "two", "a") == [f"{ws.depot}/a#3"]
    assert lines(ws, "grep", "-a", "-l", "-e", "two", "a") == [f"{ws.depot}/a#1"]
    assert lines(ws, "grep", "-F", "-e", "t.*e", "a") == []
    assert warned(ws.p4, "grep", "-e", "x", "bin") == [6684]
    assert refused(ws.p4, "grep", "-e", "(", "a") == 7198


def test_a_file_with_a_very_long_line_is_given_up(ws: Workspace) -> None:
    ws.add({"long": "one\n" + "x" * 5000 + "\n"})
    assert warned(ws.p4, "grep", "-e", "one", "long") == [6678]
    assert warned(ws.p4, "grep", "-s", "-e", "one", "long") == []


# --- annotate


def spans(ws: Workspace, *options: str) -> list[tuple[str, str, str]]:
    found: list[Any] = ws.p4.run("annotate", "-q", *options)
    return [(line["lower"], line["upper"], line["data"].rstrip()) for line in found]


def test_each_line_says_where_it_came_in(ws: Workspace) -> None:
    assert spans(ws, "a") == [
        ("1", "3", "one"),
        ("2", "3", "2"),
        ("1", "3", "three"),
        ("3", "3", "Four"),
    ]
    assert spans(ws, "a#2")[1] == ("2", "2", "2")
    assert ("1", "1", "two") in spans(ws, "-a", "a")
    header, *said = lines(ws, "annotate", "a")
    assert header.startswith(f"{ws.depot}/a#3 - edit change ")
    assert "".join(said) == "1: one\n2: 2\n1: three\n3: Four\n"


def test_each_line_says_which_change_and_who(ws: Workspace) -> None:
    numbers = [str(r["change"]) for r in ws.p4.run("changes", f"{ws.depot}/a")][::-1]
    assert [low for low, _, _ in spans(ws, "-c", "a")] == [
        numbers[0],
        numbers[1],
        numbers[0],
        numbers[2],
    ]
    assert {line["user"] for line in ws.p4.run("annotate", "-q", "-u", "a")} == {
        "cloneyard"
    }


def test_lines_are_followed_through_branches_and_merges(ws: Workspace) -> None:
    first = ws.p4.run("changes", f"{ws.depot}/a")[-1]["change"]
    ws.p4.run("integrate", f"{ws.depot}/a", f"{ws.depot}/b")
    branched = ws.submit()
    assert {low for low, _, _ in spans(ws, "-c", "b")} == {branched}
    assert spans(ws, "-i", "b")[0][0] == first

    merged = ws.edit("a", "one\n2\nthree\nFour\nfive\n")
    ws.p4.run("integrate", f"{ws.depot}/a", f"{ws.depot}/b")
    ws.p4.run("resolve", "-am")
    ws.submit()
    assert spans(ws, "-I", "b")[-1][0] == merged
    assert refused(ws.p4, "annotate", "-i", "-I", "b") == 7198


# --- verify


def test_content_is_held_against_its_digest(ws: Workspace, server: LabServer) -> None:
    known = {r["rev"]: r for r in ws.p4.run("verify", "a")}
    assert sorted(known) == ["1", "2", "3"]
    assert not any("status" in record for record in known.values())
    # P4Java asks for all in one batch.
    assert ws.p4.run("verify", "-q", "-b0", "a") == []

    digest = known["2"]["digest"]
    path = server.root / "content" / digest[:2] / digest
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    assert [(r["rev"], r["status"]) for r in ws.p4.run("verify", "-q", "a")] == [
        ("2", "BAD!")
    ]
    path.unlink()
    assert [(r["rev"], r["status"]) for r in ws.p4.run("verify", "-qz", "a")] == [
        ("2", "MISSING!")
    ]


def test_shelved_content_is_verified_apart(ws: Workspace, server: LabServer) -> None:
    change = shelved(ws.p4, ws.write("a", "shelved\n"))
    [found] = ws.p4.run("verify", "-S", f"//depot/...@={change}")
    assert (found["change"], "status" in found) == (change, False)
    assert ws.p4.run("verify", "-S", "-q", "//depot/...") == []

    path = server.root / "content" / found["digest"][:2] / found["digest"]
    path.unlink()

    of_it = [found["depotFile"], change, "MISSING!"]
    [lost] = ws.p4.run("verify", "-S", "-q", "-b0", "//depot/...")
    assert [lost["depotFile"], lost["change"], lost["status"]] == of_it
    assert ws.p4.run("verify", "-q", "-z", "//depot/...@>1") == []
    assert refused(ws.p4, "verify", "-S", "-z", "//depot/...") == 7198
    ws.p4.run("shelve", "-d", "-c", change)
    assert warned(ws.p4, "verify", "-S", "-q", "//depot/...") == [6519]


def test_content_is_verified_by_administrators(
    ws: Workspace, server: LabServer
) -> None:
    admin = server.connect(client="neutral")
    person = server.person(f"p-{ws.name}")
    before = admin.fetch_protect()
    table = [f"write user p-{ws.name} * //...", f"super user {admin.user} * //..."]
    admin.save_protect({"Protections": table})
    try:
        assert refused(person, "verify", "//depot/...") == 6185
    finally:
        admin.save_protect(before)


# --- help, passwd


def test_help_names_the_commands_of_the_lab(ws: Workspace) -> None:
    assert "annotate" in ws.p4.run("help")[0]
    assert "p4 verify [-q -s -z | -S -q]" in ws.p4.run("help", "verify")[0]
    assert refused(ws.p4, "help", "nosuchcommand") == 10241


def test_a_password_is_given_in_the_arguments(ws: Workspace, server: LabServer) -> None:
    person = server.person(f"p-{ws.name}")
    assert refused(person, "passwd", "-O", "wrong", "-P", "new-password") == 7206
    person.run("passwd", "-O", f"p-{ws.name}", "-P", "new-password")
    person.password = "new-password"
    person.run_login(password="new-password")
    assert refused(person, "passwd", "-O", "new-password") == 7198
