"""Branching, moving and resolving on the lab, by the official client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from P4 import P4Exception, Resolver

from tests.support.lab_perforce import BASE, Workspace

pytestmark = pytest.mark.timeout(90, method="thread")


def conflict(
    pair: tuple[Workspace, Workspace], *, theirs: str, yours: str
) -> Workspace:
    """Let both change the file; return the workspace that has to resolve."""
    one, two = pair
    two.p4.run("edit", "file")
    two.write("file", yours)
    one.edit("file", theirs)
    two.p4.run("sync")
    return two


def resolved(ws: Workspace, *options: str) -> list[Any]:
    return [r for r in ws.p4.run("resolve", *options) if isinstance(r, dict)]


THEIRS, YOURS = BASE.replace("1", "one"), BASE.replace("5", "five")
BOTH = THEIRS.replace("5", "five")


@pytest.mark.parametrize(
    ("option", "content", "how"),
    [
        ("-am", BOTH, "merge from"),
        ("-at", THEIRS, "copy from"),
        ("-ay", YOURS, "ignored"),
    ],
)
def test_an_outdated_edit_is_resolved_and_submitted(
    pair: tuple[Workspace, Workspace], option: str, content: str, how: str
) -> None:
    two = conflict(pair, theirs=THEIRS, yours=YOURS)
    with pytest.raises(P4Exception, match="Merges still pending"):
        two.submit()
    number = two.p4.run("opened")[0]["change"]

    assert resolved(two, option)[-1]["how"] == how

    assert two.tree()["file"] == content.encode()
    assert [r["how"] for r in two.p4.run("resolved")] == [how]
    two.p4.run("submit", "-c", number)
    one = pair[0]
    one.p4.run("sync")
    assert one.tree()["file"] == content.encode()
    assert not two.p4.run("resolved")


@pytest.mark.parametrize("option", ["-am", "-as"])
@pytest.mark.parametrize(
    ("theirs", "yours"),
    [
        (BASE.replace("3", "drei"), BASE.replace("3", "tres")),
        (f"first\n{BASE}", f"prima\n{BASE}"),
        ("all\n", "tutto\n"),
    ],
)
def test_what_cannot_be_merged_alone_is_skipped(
    pair: tuple[Workspace, Workspace], option: str, theirs: str, yours: str
) -> None:
    two = conflict(pair, theirs=theirs, yours=yours)

    said = two.p4.run("resolve", option)

    assert any("resolve skipped" in str(line) for line in said)
    assert two.tree()["file"] == yours.encode()
    assert resolved(two, "-n")


def test_a_person_edits_the_conflict(pair: tuple[Workspace, Workspace]) -> None:
    two = conflict(
        pair, theirs=BASE.replace("3", "drei"), yours=BASE.replace("3", "tres")
    )

    class Person(Resolver):  # type: ignore[misc]
        def resolve(self, merge: Any) -> str:
            path = Path(merge.result_path)
            assert b">>>> ORIGINAL" in path.read_bytes()
            path.write_text(BASE.replace("3", "drei/tres"))
            return "ae"

    two.p4.run_resolve(resolver=Person())

    assert two.tree()["file"] == BASE.replace("3", "drei/tres").encode()
    two.submit()


def test_a_binary_conflict_takes_theirs(pair: tuple[Workspace, Workspace]) -> None:
    one, two = pair
    two.p4.run("edit", "binary")
    one.edit("binary", b"\0\2")
    two.p4.run("sync")

    assert resolved(two, "-am")[-1]["how"] == "copy from"
    assert two.tree()["binary"] == b"\0\2"


def test_a_branch_takes_what_its_source_got(pair: tuple[Workspace, Workspace]) -> None:
    ws = pair[0]
    assert {r["action"] for r in ws.p4.run("integrate", "fi...", "copy/fi...")} == {
        "branch"
    }
    ws.submit()
    ws.edit("file", THEIRS)
    ws.edit("copy/file", YOURS)

    assert [r["action"] for r in ws.p4.run("integrate", "fi...", "copy/fi...")] == [
        "integrate"
    ]
    ws.p4.run("resolve", "-am")
    ws.submit()

    assert ws.tree()["copy/file"] == BOTH.encode()
    ws.p4.run("integrate", "fi...", "copy/fi...")
    assert "already integrated" in ws.p4.warnings[0]
    log = ws.p4.run_filelog("copy/file")[0].revisions
    assert [[i.how for i in r.integrations] for r in log] == [
        ["merge from"],
        [],
        ["branch from"],
    ]


def test_a_deleted_source_deletes_its_branch(pair: tuple[Workspace, Workspace]) -> None:
    ws = pair[0]
    ws.p4.run("integrate", "file", "copy")
    ws.submit()
    ws.p4.run("delete", "file")
    ws.submit()

    assert ws.p4.run("integrate", "file", "copy")[0]["action"] == "delete"
    ws.submit()
    assert "copy" not in ws.tree()


def test_a_branch_that_is_reverted_goes(pair: tuple[Workspace, Workspace]) -> None:
    ws = pair[0]
    ws.p4.run("integrate", "file", "copy")
    assert ws.tree()["copy"] == BASE.encode()

    ws.p4.run("revert", "copy")

    assert "copy" not in ws.tree()
    assert ws.p4.run("integrate", "-n", "file", "copy")[0]["action"] == "branch"


def test_a_move_is_one_delete_and_one_add(pair: tuple[Workspace, Workspace]) -> None:
    one, two = pair
    one.p4.run("edit", "file")
    one.write("file", THEIRS)
    one.p4.run("move", "file", "new/name")
    assert {r["action"] for r in one.p4.run("opened")} == {"move/delete", "move/add"}
    assert one.tree() == {"binary": b"\0\1", "new/name": THEIRS.encode()}
    with pytest.raises(P4Exception):
        one.p4.run("submit", "-d", "half", "new/name")
    [number] = {r["change"] for r in one.p4.run("opened")} - {"default"}
    one.p4.run("reopen", "-c", number, "file", "new/name")
    one.p4.run("submit", "-c", number)

    two.p4.run("sync")
    assert two.tree() == one.tree()
    made = two.p4.run_filelog("new/name")[0].revisions[0]
    assert (made.action, made.integrations[0].how) == ("move/add", "moved from")


def test_both_halves_of_a_move_are_reverted(pair: tuple[Workspace, Workspace]) -> None:
    ws = pair[0]
    ws.p4.run("edit", "file")
    ws.p4.run("move", "file", "name")

    ws.p4.run("revert", "name")

    assert ws.tree() == {"binary": b"\0\1", "file": BASE.encode()}
    assert not ws.p4.run("opened")


def test_wildcards_of_both_sides_have_to_be_the_same(
    pair: tuple[Workspace, Workspace],
) -> None:
    ws, _ = pair
    for command in ("move", "integrate"):
        with pytest.raises(P4Exception, match="Incompatible wildcards"):
            ws.p4.run(command, f"{ws.depot}/file", f"{ws.depot}/to/...")


# --- types


def types_changed(
    pair: tuple[Workspace, Workspace], *, theirs: str, yours: str = ""
) -> Workspace:
    """Let both change content, and one or both the type; return who resolves."""
    one, two = pair
    two.p4.run("edit", *(("-t", yours) if yours else ()), "file")
    two.write("file", YOURS)
    one.p4.run("edit", "-t", theirs, "file")
    one.write("file", THEIRS)
    one.submit()
    two.p4.run("sync")
    return two


def opened_type(ws: Workspace) -> str:
    return str(ws.p4.run("opened", "file")[0]["type"])


@pytest.mark.parametrize("option", ["-am", "-at", "-ay"])
def test_a_type_that_somebody_gave_is_resolved_with_the_content(
    pair: tuple[Workspace, Workspace], option: str
) -> None:
    two = types_changed(pair, theirs="text+x")
    told = [r["resolveType"] for r in resolved(two, "-n")]
    assert told == ["content", "filetype"]

    two.p4.run("resolve", option)

    is_taken = option != "-ay"
    assert opened_type(two) == ("text+x" if is_taken else "text")
    assert bool((two.root / "file").stat().st_mode & 0o100) == is_taken
    number = two.p4.run("opened")[0]["change"]
    assert number == "default"
    two.submit()
    one = pair[0]
    one.p4.run("sync")
    head = one.p4.run("files", "file")[0]["type"]
    assert head == ("text+x" if is_taken else "text")


def test_two_types_are_not_brought_together_alone(
    pair: tuple[Workspace, Workspace],
) -> None:
    two = types_changed(pair, theirs="text+x", yours="text+w")

    said = two.p4.run("resolve", "-am")

    assert any("resolve skipped" in str(line) for line in said)
    assert opened_type(two) == "text+w"
    for options in ((), ("-af",)):
        with pytest.raises(P4Exception, match="not part of the lab"):
            two.p4.run("resolve", *options)
    two.p4.run("resolve", "-at")
    assert opened_type(two) == "text+x"
    assert two.tree()["file"] == THEIRS.encode()


def test_a_virtual_branch_is_submitted_without_its_client(
    pair: tuple[Workspace, Workspace],
) -> None:
    """Its content is its source's, nobody has it, and the log tells of the commit."""
    ws, _ = pair
    ws.p4.run("configure", "set", "track=1")
    [opened] = ws.p4.run("integrate", "-v", "file", "twin")
    assert opened["action"] == "branch"
    assert not (ws.root / "twin").exists()
    ws.p4.run("revert", "twin")
    ws.p4.run("integrate", "-v", "file", "twin")

    ws.p4.run("submit", "-d", "a virtual branch")

    assert not (ws.root / "twin").exists()
    assert ws.p4.run("have", "twin") == []
    [source], [twin] = (ws.p4.run("fstat", "-Ol", name) for name in ("file", "twin"))
    assert (twin["headAction"], twin["digest"]) == ("branch", source["digest"])
    ws.p4.run("sync", "twin")
    assert (ws.root / "twin").read_text() == (ws.root / "file").read_text()
    tail = ws.p4.run("logtail", "-b", "20000", "-s", "0", "-m", "99")
    told = "".join(str(part["data"]) for part in tail if "data" in part)
    told = told[told.index("'user-submit -d a virtual branch") - 200 :]
    ws.p4.run("configure", "unset", "track")
    heads = re.findall(r"pid (\d+) \S+ \S+ \[.+\] '(user-submit|dm-\w+)", told)
    names = list(dict.fromkeys(name for _, name in heads))
    assert names == ["user-submit", "dm-SubmitChange", "dm-CommitSubmit"]
    assert len({pid for pid, _ in heads}) == 1
    tracked = next(
        block
        for block in told.split("\n\n")
        if "'dm-CommitSubmit'\n--- " in block and "--- lapse" in block
    )
    assert re.search(
        r"--- db\.integed\n---   locks read/write 0/1 rows get\+pos\+scan put\+del "
        r"0\+0\+0 1\+0\n---   total lock wait\+held read/write \d+ms\+\d+ms/",
        tracked,
    )
