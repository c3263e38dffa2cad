"""p4 lock and unlock on the lab, and what they do to others' work."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    refused,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def both(server: LabServer, tmp_path: Path) -> tuple[Workspace, Workspace]:
    """Two clients in which the same file is opened."""
    mark = uuid.uuid4().hex[:8]
    one, other = (
        workspace(server, tmp_path / n, name=f"{n}-{mark}", depot=f"//depot/{mark}")
        for n in ("one", "other")
    )
    one.add({"f": "1\n"})
    other.p4.run("sync")
    for ws in (one, other):
        ws.p4.run("edit", "f")
    return one, other


def test_a_locked_file_is_submitted_by_its_owner_alone(
    both: tuple[Workspace, Workspace],
) -> None:
    one, other = both
    path = one.p4.run("opened")[0]["depotFile"]

    assert one.p4.run("lock", "f") == [f"{path} - locking"]
    assert one.p4.run("lock", "f") == [f"{path} - already locked"]
    user, client = one.p4.user, one.p4.client
    assert other.p4.run("lock") == [f"{path} - already locked by {user}@{client}"]
    assert other.p4.run("unlock") == [f"{path} - locked by {user}@{client}"]
    assert one.p4.run("opened")[0]["ourLock"] == ""
    assert "ourLock" in one.p4.run("fstat", "f")[0]
    assert other.p4.run("fstat", "f")[0]["otherLock"] == [f"{user}@{client}"]

    (other.root / "f").write_text("2\n")
    assert refused(other.p4, "submit", "-d", "mine") == 7211
    (one.root / "f").write_text("3\n")
    one.submit()
    # Who locked it has it no more.
    assert "otherLock" not in other.p4.run("fstat", "f")[0]


def test_locks_end_with_what_is_opened(both: tuple[Workspace, Workspace]) -> None:
    one, other = both
    one.p4.run("lock")
    other.p4.run("revert", "f")
    told = other.p4.run("edit", "f")
    assert any("locked by" in str(line) for line in told)

    one.p4.run("revert", "f")

    assert "locking" in other.p4.run("lock", "f")[0]
    assert "unlocking" in other.p4.run("unlock", "f")[0]
    assert "already unlocked" in other.p4.run("unlock", "f")[0]


def test_an_administrator_breaks_a_lock(
    both: tuple[Workspace, Workspace], server: LabServer
) -> None:
    one, other = both
    one.p4.run("lock")
    path = one.p4.run("opened")[0]["depotFile"]
    nobody = server.person("zoe", client=other.p4.client)
    assert refused(nobody, "unlock", "-f", path) == 6185

    assert other.p4.run("unlock", "-f", path) == [f"{path} - unlocking"]
    assert "locking" in other.p4.run("lock", "f")[0]


def test_locks_are_seen_without_tags(both: tuple[Workspace, Workspace]) -> None:
    one, _ = both
    one.p4.run("lock")
    one.p4.tagged = False

    assert one.p4.run("opened")[0].endswith("*locked*")


LEVELS = [57, 70, 85, 97, 99]


@pytest.mark.parametrize("is_tagged", [True, False])
@pytest.mark.parametrize("level", LEVELS)
def test_clients_of_every_level_work(
    server: LabServer, tmp_path: Path, level: int, is_tagged: bool
) -> None:
    mark = uuid.uuid4().hex[:8]
    ws = workspace(server, tmp_path, name=f"ws-{mark}", depot=f"//depot/{mark}")
    ws.p4.disconnect()
    ws.p4.api_level, ws.p4.tagged = level, is_tagged
    ws.p4.connect()

    ws.write("f", "1\n")
    ws.p4.run("add", "f")
    ws.p4.run("submit", "-d", "first")
    ws.p4.run("edit", "f")
    (ws.root / "f").write_text("2\n")
    for command in ("opened", "diff", "fstat f", "where f", "client -o", "change -o"):
        assert ws.p4.run(*command.split()), command
    ws.p4.run("submit", "-d", "second")
    for command in ("flush #1", "flush", "have", "filelog f", "changes -m1", "files f"):
        name, *rest = command.split()
        assert ws.p4.run(name, *rest), command
    assert "2\n" in "".join(str(part) for part in ws.p4.run("print", "f"))
