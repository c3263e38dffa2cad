"""A tree becomes what it was in a snapshot, and nothing outside of it changes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.gateways.errors import NotFound
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.snapshot_restoring import (
    MOST_FAILED,
    RestoredTree,
    restore_tree,
)
from tests.gateways.hosts.errand import OWNER
from tests.support.file_trees import NOT_TEXT, tree


def listed(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time and content of each entry."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            0 if path.is_dir() else path.lstat().st_mtime_ns * (not path.is_symlink()),
            os.readlink(path)
            if path.is_symlink()
            else ("" if path.is_dir() else path.read_text()),
        )
        for path in root.rglob("*")
    }


def restored(then: Path, now: Path) -> RestoredTree:
    return restore_tree(then, now, on_progress=lambda seen: None)


@pytest.fixture
def then(tmp_path: Path) -> Path:
    files = {"src/a b.c": "old", "src/deep/ü.c": "old", f"src/{NOT_TEXT}": "old"}
    root = tree(tmp_path / "then", files)
    (root / "empty").mkdir()
    (root / "link").symlink_to("/etc/passwd")
    (root / "src" / "a b.c").chmod(0o444)
    (root / "src" / "deep").chmod(0o750)
    return root


@pytest.fixture
def now(then: Path, tmp_path: Path) -> Path:
    root = tmp_path / "now"
    shutil.copytree(then, root, symlinks=True)
    return root


def test_nothing_is_copied_where_nothing_changed(then: Path, now: Path) -> None:
    assert restored(then, now) == RestoredTree(copied=0, removed=0)


def test_everything_is_as_it_was(then: Path, now: Path, tmp_path: Path) -> None:
    outside = tree(tmp_path / "outside", {"theirs": "x"})
    (now / "src" / "a b.c").chmod(0o644)
    (now / "src" / "a b.c").write_text("newer")
    shutil.rmtree(now / "src" / "deep")
    (now / "src" / "deep").write_text("a file has the name now")
    (now / "src" / NOT_TEXT).unlink()
    (now / "link").unlink()
    tree(now, {"link/below/x": "a directory has the name now", "new/below/y": "new"})
    (now / "empty").rmdir()
    (now / "empty").symlink_to(outside)
    (now / "new" / "out").symlink_to(outside)

    found = restored(then, now)

    assert found.failed == []
    assert listed(now) == listed(then)
    assert (outside / "theirs").read_text() == "x"
    assert restored(then, now) == RestoredTree(copied=0, removed=0)


def test_what_cannot_be_is_said_and_the_rest_restored(then: Path, now: Path) -> None:
    os.mkfifo(then / "pipe")
    shutil.rmtree(now / "src")

    found = restored(then, now)

    assert found.failed == [("pipe", "It is neither a file nor a link.")]
    assert (now / "src" / "a b.c").read_text() == "old"
    with pytest.raises(NotFound):
        restored(then / "none", now)


def test_of_many_that_cannot_be_some_are_named(then: Path, now: Path) -> None:
    for number in range(MOST_FAILED + 1):
        os.mkfifo(then / f"pipe-{number}")

    found = restored(then, now)

    assert (found.failed_count, len(found.failed)) == (MOST_FAILED + 1, MOST_FAILED)
    assert found.reasons == {"It is neither a file nor a link."}


def test_a_snapshot_that_ontap_deletes_meanwhile_is_said(then: Path, now: Path) -> None:
    with pytest.raises(NotFound):
        restore_tree(then, now, on_progress=lambda seen: shutil.rmtree(then))
    assert (now / "src" / "a b.c").read_text() == "old"


@pytest.fixture
def owned() -> Iterator[Path]:
    """A directory that the owner of the files reaches, with two trees of theirs."""
    with tempfile.TemporaryDirectory() as place:
        root = tree(Path(place), {"then/src/deep/x": "old", "now/src/deep/x": "newer"})
        tree(root, {"now/cache/below/y": "new"})
        for name in ("then/src/deep", "now/src/deep", "now/cache/below", "now/cache"):
            (root / name).chmod(0o555)
        for path in [root, *root.rglob("*")]:
            os.chown(path, OWNER.uid, OWNER.gid)
        yield root


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works as others")
def test_its_owner_restores_what_is_in_read_only_directories(owned: Path) -> None:
    then, now = owned / "then", owned / "now"

    found = run_as(OWNER, restore_tree, then, now, on_progress=lambda seen: None)

    assert found.failed == []
    assert listed(now) == listed(then)


def test_snapshots_in_it_stay(then: Path, now: Path) -> None:
    tree(now, {".snapshot/hourly/x": "kept", "new/.snapshot/hourly/x": "kept"})

    found = restored(then, now)

    assert (now / ".snapshot" / "hourly" / "x").read_text() == "kept"
    assert (now / "new" / ".snapshot" / "hourly" / "x").read_text() == "kept"
    assert found.failed == [("new", "Directory not empty.")]
    assert stat.S_ISDIR((now / "new").lstat().st_mode)
