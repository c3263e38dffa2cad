"""Trees are compared with snapshots, and files taken back without loss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.hosts import snapshot_files
from provisioner.gateways.hosts.snapshot_files import TakenBack, TreeChanges
from provisioner.lib.inner_paths import inner_path
from tests.support.file_trees import NOT_TEXT, tree


@pytest.fixture
def then(tmp_path: Path) -> Path:
    """A snapshot."""
    return tree(tmp_path / "then", {"src/a b.c": "old", "src/ünï/b.c": "old"})


@pytest.fixture
def now(tmp_path: Path) -> Path:
    """The tree that people go on working in."""
    return tree(tmp_path / "now", {"src/a b.c": "newer"})


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file()
    }


def compared(then: Path, now: Path, *, entries: int = 1000) -> TreeChanges:
    return snapshot_files.compare_with_snapshot(
        then,
        now,
        most_named=2,
        most_entries=entries,
        on_progress=lambda seen: None,
    )


def taken_back(then: Path, now: Path, path: str, *, most_files: int = 10) -> TakenBack:
    return snapshot_files.take_back(
        then,
        now,
        path,
        label="newer",
        most_files=most_files,
        on_progress=lambda done: None,
    )


def test_a_comparison_says_what_was_added_changed_and_removed(
    then: Path, now: Path
) -> None:
    (then / "link").symlink_to("src")
    (now / "link").symlink_to("/etc")
    (now / ".snapshot" / "other").mkdir(parents=True)
    for name in ("new", NOT_TEXT, "x"):
        (now / name).write_text("mine")
    same = then / "same.c"
    same.write_text("")
    os.utime(tree(now, {"same.c": ""}) / "same.c", ns=(1, same.stat().st_mtime_ns))

    found = compared(then, now)

    assert found == TreeChanges(
        added=[r"caf\xe9.c", "new"],
        changed=["link", "src/a b.c"],
        removed=["src/ünï/"],
        counts={"added": 3, "changed": 2, "removed": 1},
    )
    assert not compared(then, now, entries=1).is_complete


def test_a_file_comes_back_and_newer_content_is_kept(then: Path, now: Path) -> None:
    for _ in range(2):  # also after an answer that was lost
        found = taken_back(then, now, "src/a b.c")
        assert found == TakenBack(files=1, kept=[("src/a b.c", "src/a b.c.newer")])
    assert contents(now) == {"src/a b.c": "old", "src/a b.c.newer": "newer"}
    assert compared(then, now).changed == []

    (now / "src" / "a b.c").write_text("still newer")
    found = taken_back(then, now, "src/a b.c")
    assert [name for _, name in found.kept] == [
        "src/a b.c.newer",
        "src/a b.c.newer-2",
    ]
    assert contents(now)["src/a b.c.newer-2"] == "still newer"


def test_what_was_killed_half_way_is_completed(then: Path, now: Path) -> None:
    (now / "src" / "a b.c").rename(now / "src" / "a b.c.newer")
    assert taken_back(then, now, "src").kept == [("src/a b.c", "src/a b.c.newer")]
    assert contents(now)["src/a b.c"] == "old"


def test_a_directory_comes_back_with_links_and_any_names(then: Path, now: Path) -> None:
    (then / "src" / "link").symlink_to("/etc/passwd")
    tree(then, {f"src/{NOT_TEXT}": "bytes"})
    tree(now, {"src/link/inside.c": "a directory has the name now"})

    found = taken_back(then, now, "src", most_files=4)

    assert (found.files, found.failed) == (4, [])
    assert os.readlink(now / "src" / "link") == "/etc/passwd"
    assert contents(now / "src") == {
        "a b.c": "old",
        "a b.c.newer": "newer",
        "ünï/b.c": "old",
        NOT_TEXT: "bytes",
        "link": Path("/etc/passwd").read_text(),
        "link.newer/inside.c": "a directory has the name now",
    }
    assert taken_back(then, now, r"src/caf\xe9.c").files == 1
    with pytest.raises(Refused, match="more than 3 files"):
        taken_back(then, now, "src", most_files=3)


def test_links_lead_nowhere(then: Path, now: Path, tmp_path: Path) -> None:
    outside = tree(tmp_path / "outside", {"ünï/b.c": "theirs"})
    (then / "out").symlink_to(outside)
    for path in ("out/ünï/b.c", "src/none", ".snapshot/hourly/b.c"):
        with pytest.raises(NotFound):
            taken_back(then, now, path)
    (now / "src").rename(now / "moved")
    (now / "src").symlink_to(outside)

    found = taken_back(then, now, "src/ünï/b.c")

    assert found.failed == [("src/ünï/b.c", "Not a directory.")]
    assert contents(outside) == {"ünï/b.c": "theirs"}
    with pytest.raises(NotFound, match="is not seen"):
        taken_back(tmp_path / "gone", now, "src")


@pytest.mark.parametrize("path", ["", "/", "/etc", "../x", "a/./b", "a\0b", "a" * 5000])
def test_paths_stay_inside(path: str) -> None:
    with pytest.raises(ValueError, match=r"path|root"):
        inner_path(path)


def test_slashes_of_paths_are_tidied() -> None:
    assert inner_path("src//ünï/") == "src/ünï"
