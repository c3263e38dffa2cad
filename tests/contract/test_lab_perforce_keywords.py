"""Keyword files (`+k`) from submit to sync, as the official client sees them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.support.lab_perforce import LabServer, Workspace, workspace

pytestmark = pytest.mark.timeout(90, method="thread")

TEXT = "".join(
    f"${name}$\n"
    for name in (
        *("Id", "Header", "Date", "DateUTC", "DateTime", "DateTimeUTC", "DateTimeTZ"),
        *("Change", "File", "Revision", "Author", "Other"),
    )
)
DAY, CLOCK = r"\d{4}/\d\d/\d\d", r"\d\d:\d\d:\d\d"


@pytest.fixture
def ws(server: LabServer, tmp_path: Path) -> Workspace:
    made = workspace(
        server, tmp_path, name=f"ws-{tmp_path.name}", depot=f"//depot/{tmp_path.name}"
    )
    for name, kind in (("k", "text+k"), ("ko", "text+ko"), ("plain", "text")):
        made.write(name, TEXT)
        made.p4.run("add", "-t", kind, name)
    made.submit()
    return made


def read(ws: Workspace, name: str) -> str:
    return (ws.root / name).read_text()


def expected(ws: Workspace, *, revision: int, change: str) -> str:
    file = re.escape(f"{ws.depot}/k")
    return "".join(
        rf"\${line}\$\n"
        for line in (
            *(rf"Id: {file}#{revision} ", rf"Header: {file}#{revision} "),
            *(f"Date: {DAY} ", f"DateUTC: {DAY} "),
            *(f"DateTime: {DAY} {CLOCK} ", f"DateTimeUTC: {DAY} {CLOCK} "),
            rf"DateTimeTZ: {DAY} {CLOCK} [+-]\d{{4}} \w+ ",
            *(f"Change: {change} ", f"File: {file} ", f"Revision: #{revision} "),
            *("Author: cloneyard ", "Other"),
        )
    )


def md5(data: str) -> str:
    return hashlib.md5(data.encode(), usedforsecurity=False).hexdigest().upper()


def test_keywords_are_filled_in_where_they_were_written(ws: Workspace) -> None:
    change = ws.p4.run("changes", "-m1", f"{ws.depot}/...")[0]["change"]

    assert re.fullmatch(expected(ws, revision=1, change=change), read(ws, "k"))
    only_old = read(ws, "ko")
    assert f"$Id: {ws.depot}/ko#1 $\n$Header: {ws.depot}/ko#1 $\n$Date$" in only_old
    assert read(ws, "plain") == TEXT
    assert not (ws.root / "k").stat().st_mode & 0o222


def test_every_revision_says_its_own(ws: Workspace) -> None:
    ws.p4.run("edit", "k")
    change = ws.submit()

    assert re.fullmatch(expected(ws, revision=2, change=change), read(ws, "k"))
    ws.p4.run("sync", "k#1")
    assert f"{ws.depot}/k#1 $" in read(ws, "k")
    assert ws.p4.run("print", "-q", "k")[-1] == ws.p4.run("print", "-q", "k#2")[-1]
    assert f"{ws.depot}/k#2 $" in ws.p4.run("print", "-q", "k")[-1]


def test_digests_are_those_of_the_file_that_is_read(ws: Workspace) -> None:
    ws.p4.run("sync", "-f")
    for name in ("k", "ko", "plain"):
        [known] = ws.p4.run("fstat", "-Ol", name)
        assert known["digest"] == md5(read(ws, name)), name
    assert ws.p4.run("diff", "-se") == []
    assert ws.p4.run("reconcile", "-n") == []


def test_what_only_differs_in_keywords_is_no_change(ws: Workspace) -> None:
    ws.p4.run("edit", "k")
    ws.p4.run("revert", "-a")
    assert ws.p4.run("opened") == []


@pytest.mark.parametrize("option", ["-K", "-k"])
def test_keywords_can_be_left_empty_in_print(ws: Workspace, option: str) -> None:
    assert ws.p4.run("print", "-q", option, "k")[-1] == TEXT


def test_keywords_can_be_left_empty_in_sync_and_submit(ws: Workspace) -> None:
    ws.p4.run("sync", "-K", "-f", "k")
    assert read(ws, "k") == TEXT

    ws.p4.run("edit", "k")
    ws.p4.run("submit", "-K", "-d", "again")
    assert read(ws, "k") == TEXT
    ws.p4.run("sync", "-f", "k")
    assert f"{ws.depot}/k#2 $" in read(ws, "k")


def test_keywords_do_not_conflict(
    ws: Workspace, server: LabServer, tmp_path: Path
) -> None:
    text = "$Revision$\none\n2\n3\n4\n5\nsix\n"
    ws.edit("k", text)
    other = workspace(server, tmp_path, name=f"o-{ws.name}", depot=ws.depot)
    other.p4.run("sync")
    ws.edit("k", read(ws, "k").replace("one", "ONE"))
    other.p4.run("edit", "k")
    other.write("k", read(other, "k").replace("six", "SIX"))

    other.p4.run("sync")
    other.p4.run("resolve", "-am")
    other.submit()

    assert read(other, "k") == "$Revision: #4 $\nONE\n2\n3\n4\n5\nSIX\n"


def test_a_reopened_file_stays_writable(ws: Workspace) -> None:
    ws.p4.run("edit", "k")
    ws.p4.run("submit", "-r", "-d", "again")
    assert f"{ws.depot}/k#2 $" in read(ws, "k")
    assert (ws.root / "k").stat().st_mode & 0o200
    ws.p4.run("revert", "-a")
    assert ws.p4.run("opened") == []


def test_a_line_tells_that_a_file_was_refreshed(ws: Workspace) -> None:
    ws.p4.run("edit", "k", "plain")
    said = ws.p4.run("submit", "-d", "again", tagged=False)
    assert said[-1] == f"{ws.depot}/k#2 - refreshing {ws.root}/k"


def test_a_moved_file_says_where_it_is(ws: Workspace) -> None:
    ws.p4.run("edit", "k")
    ws.p4.run("move", "k", "l")
    ws.submit()
    assert f"$Id: {ws.depot}/l#1 $" in read(ws, "l")


def test_what_a_sync_would_do_is_summed_up(ws: Workspace) -> None:
    ws.p4.run("edit", "plain")
    ws.write("plain", "longer\n" * 100)
    ws.submit()
    ws.p4.run("sync", "k#0", "ko", "plain#1")

    assert ws.p4.run("sync", "-N") == [
        {
            **{"filesAdded": "1", "filesUpdated": "1", "filesDeleted": "0"},
            "bytesAdded": ws.p4.run("fstat", "-Ol", "k")[0]["fileSize"],
            "bytesUpdated": "700",
        }
    ]
    assert read(ws, "plain") == TEXT
    [line] = ws.p4.run("sync", "-N", "k#0", "plain#0", tagged=False)[:1]
    assert "Server network estimates: files added/updated/deleted=" in line
