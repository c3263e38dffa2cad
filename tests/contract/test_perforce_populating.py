"""Trees brought from one change to another by `sync -p`: exact, and no have list."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.errors import NotFound
from provisioner.gateways.perforce.types import PopulateReport
from tests.support.perforce_scene import PerforceScene, running_lab, scene_at

ODD = "a #1 @home 100%*.txt"


def tree(root: Path) -> dict[str, Any]:
    """Return what lies below a root: directories, links, contents with the x bit."""
    found: dict[str, Any] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_dir():
            found[name] = "directory"
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def populate(
    scene: PerforceScene, client: str, *, since: int, change: int
) -> PopulateReport:
    return scene.gateway.files.populate(
        client, since=since, change=change, on_progress=lambda done, total: None
    )


def synced(scene: PerforceScene, change: int, *, suffix: str = "ws") -> Path:
    """Return a tree of a change, as a clone of a snapshot has it."""
    client = scene.make_client(f"{suffix}-sync", root=str(scene.place / suffix))
    (scene.place / suffix).mkdir(exist_ok=True)
    scene.gateway.files.sync(client.name, change=change, on_progress=lambda _: None)
    return scene.place / suffix


def mapping_client(scene: PerforceScene, suffix: str = "ws") -> str:
    """Return a client without a have list, at the root of a tree."""
    options = "noallwrite clobber nocompress unlocked nomodtime normdir"
    return scene.make_client(
        f"{suffix}-map", root=str(scene.place / suffix), options=options
    ).name


@pytest.fixture
def history(perforce: PerforceScene) -> list[int]:
    """Changes in which files come, go, and become others."""
    return [
        perforce.submit({"a": b"1\n", "d/x": b"x\n", ODD: b"odd\n", "tool": b"#!/x\n"}),
        perforce.submit({"a": b"2\n", "new/deep/er": b"n\n"}),
        perforce.submit({"d/x": None, "to": Path("a")}),
    ]


def test_a_tree_is_brought_to_exactly_each_change_there_and_back(
    perforce: PerforceScene, history: list[int]
) -> None:
    """Files swap with directories and links, too, and get another x bit."""
    author = perforce.place / "author"
    (author / "d").rmdir()
    history += [
        perforce.submit({"d": b"a file now\n", ODD: b"odder\n", "tool": None}),
        perforce.submit({"new/deep/er": None, "d": None, "tool": b"#!/y\n"}),
        perforce.submit({"d/x": b"x again\n", "to": Path("tool"), ODD: None}),
    ]
    wanted = {
        change: tree(synced(perforce, change, suffix=f"at{change}"))
        for change in history
    }
    root = synced(perforce, history[0])
    client = mapping_client(perforce)
    at = history[0]
    # Each step of the way there, one leap, each step back but one.
    for place in (1, 2, 3, 4, 5, 0, 3, 5, 4, 3, 2, 1, 4, 0):
        populate(perforce, client, since=at, change=history[place])
        at = history[place]
        assert tree(root) == wanted[at], (at, place)


def test_only_what_was_submitted_in_between_is_sent(
    perforce: PerforceScene, history: list[int]
) -> None:
    synced(perforce, history[0])
    client = mapping_client(perforce)

    report = populate(perforce, client, since=history[0], change=history[2])

    assert report == PopulateReport(written=3, removed=1)
    again = populate(perforce, client, since=history[0], change=history[2])
    assert again == PopulateReport(written=3, removed=0), "safe to repeat"
    nothing = populate(perforce, client, since=history[2], change=history[2])
    assert nothing == PopulateReport(written=0, removed=0)


def test_what_a_build_left_writable_is_overwritten(
    perforce: PerforceScene, history: list[int]
) -> None:
    root = synced(perforce, history[0])
    (root / "a").chmod(0o666)
    (root / "a").write_text("half of it\n")
    (root / "out").write_text("built\n")

    populate(perforce, mapping_client(perforce), since=history[0], change=history[1])

    assert (root / "a").read_text() == "2\n"
    assert (root / "out").read_text() == "built\n"


def test_a_directory_that_became_a_link_is_not_followed(
    perforce: PerforceScene, history: list[int]
) -> None:
    root = synced(perforce, history[0])
    elsewhere = perforce.place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_text("somebody's\n")
    shutil.rmtree(root / "d")
    (root / "d").symlink_to(elsewhere)

    report = populate(
        perforce, mapping_client(perforce), since=history[0], change=history[2]
    )

    assert report.removed == 0
    assert (elsewhere / "x").read_text() == "somebody's\n"


@pytest.fixture
def tracked_perforce() -> Iterator[PerforceScene]:
    """A server that says of each command which tables it used."""
    with running_lab("-L", "log") as target:
        for scene in scene_at(target):
            with scene.at_the_shell("none") as shell:
                shell.run("configure", "set", "track=1")
            yield scene


def test_no_have_list_is_written(tracked_perforce: PerforceScene) -> None:
    """The server's own table is as it was, and no command has locked it."""
    scene = tracked_perforce
    first = scene.submit({"a": b"1\n", "b": b"1\n"})
    last = scene.submit({"a": b"2\n", "b": None, "c": b"1\n"})
    root = synced(scene, first)
    client = mapping_client(scene)
    before, said = have_rows(scene), log_of(scene)
    assert "--- db.have" in said, "by the sync"

    populate(scene, client, since=first, change=last)

    assert tree(root).keys() == {"a", "c"}
    assert have_rows(scene) == before
    lately = log_of(scene).removeprefix(said)
    assert "user-sync -p" in lately
    assert "--- db." not in lately.replace("--- db.rev", "")


def log_of(scene: PerforceScene) -> str:
    assert scene.target.lab_root is not None
    return (scene.target.lab_root / "log").read_text()


def have_rows(scene: PerforceScene) -> list[Any]:
    """Return the have lists of all clients, with the moments they were written."""
    assert scene.target.lab_root is not None
    [path] = [
        path
        for path in scene.target.lab_root.iterdir()
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3"
    ]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return database.execute("SELECT * FROM have ORDER BY 1, 2").fetchall()


def test_changes_to_a_view_come_in_order_with_who_and_what(
    perforce: PerforceScene, history: list[int]
) -> None:
    client = mapping_client(perforce)

    def found(**asked: int) -> list[int]:
        changes = perforce.gateway.changes.submitted_to(
            client, **{"above": 0, "upto": history[-1], "at_most": 50, **asked}
        )
        assert all(c.user == perforce.account.user and c.title for c in changes)
        return [change.number for change in changes]

    assert found() == history
    assert found(above=history[0], upto=history[2]) == history[1:3]
    assert found(at_most=2) == history[-2:]
    assert found(above=history[-1]) == []


def test_a_change_or_a_client_that_is_not_there_is_refused(
    perforce: PerforceScene, history: list[int]
) -> None:
    client = mapping_client(perforce)
    with pytest.raises(NotFound):
        populate(perforce, client, since=history[0], change=history[-1] + 10**6)
    with pytest.raises(NotFound):
        populate(perforce, "no-such", since=history[0], change=history[1])
    with pytest.raises(NotFound):
        perforce.gateway.changes.submitted_to("no-such", above=0, upto=9, at_most=9)
