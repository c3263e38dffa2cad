"""Removing what Perforce does not manage: all of that, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.gateways.hosts.clearing import Versioned, clear_tree

NAMES = st.sampled_from([b"a", b"b", b"c", b"\xff", b"d e", b".x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)


def keeping(root: Path, *paths: str) -> Versioned:
    keep = Versioned(root)
    for path in paths:
        keep.add(str(root / path))
    return keep


def tree_of(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_what_is_versioned_stays_and_the_rest_goes(tmp_path: Path) -> None:
    for name in ("src/a", "src/a.o", "src/deep/b", "out/x/y/z", "loose"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "empty").mkdir()

    report = clear_tree(tmp_path, keep=keeping(tmp_path, "src/a", "src/deep/b"))

    assert tree_of(tmp_path) == ["src", "src/a", "src/deep", "src/deep/b"]
    assert (report.removed, report.failed) == (7, 0)
    again = clear_tree(tmp_path, keep=keeping(tmp_path, "src/a", "src/deep/b"))
    assert again.removed == 0


def test_links_are_removed_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "src").symlink_to(outside)

    clear_tree(root, keep=keeping(root, "src/precious", "kept"))

    assert tree_of(root) == []
    assert (outside / "precious").exists()


def test_a_versioned_link_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/nowhere")

    clear_tree(tmp_path, keep=keeping(tmp_path, "link"))

    assert (tmp_path / "link").is_symlink()


def test_what_stands_in_the_way_of_a_versioned_file_goes(tmp_path: Path) -> None:
    (tmp_path / "file" / "below").mkdir(parents=True)
    (tmp_path / "directory").write_text("x")

    clear_tree(tmp_path, keep=keeping(tmp_path, "file", "directory/a"))

    assert tree_of(tmp_path) == []


def test_directories_that_nobody_may_write_to_go_too(tmp_path: Path) -> None:
    for mode, name in ((0o555, "cache"), (0o000, "closed")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
        (tmp_path / name).chmod(mode)

    report = clear_tree(tmp_path, keep=keeping(tmp_path))

    assert (tree_of(tmp_path), report.failed) == ([], 0)


def test_what_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stuck").write_text("x")
    (tmp_path / "loose").write_text("x")
    unlink = os.unlink

    def refuse(name: bytes, *, dir_fd: int) -> None:
        if name == b"stuck":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)

    report = clear_tree(tmp_path, keep=keeping(tmp_path))

    assert report.failures == ("stuck: Operation not permitted",)
    assert (report.removed, report.failed) == (1, 1)
    monkeypatch.undo()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.sets(PATHS, max_size=5), others=st.sets(PATHS, max_size=5))
def test_exactly_the_versioned_files_are_left(
    tmp_path_factory: pytest.TempPathFactory, kept: set[bytes], others: set[bytes]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    made: set[bytes] = set()
    for path in (*sorted(kept), *sorted(others)):
        place = os.fsencode(root) + b"/" + path
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if not os.path.isdir(place):
                Path(os.fsdecode(place)).write_text("x")
                made.add(path)
        except (FileExistsError, NotADirectoryError):
            continue  # a file and a directory of one name

    clear_tree(root, keep=keeping(root, *map(os.fsdecode, kept)))

    left = {
        os.fsencode(path.relative_to(root))
        for path in root.rglob("*")
        if not path.is_dir()
    }
    assert left == made & kept
