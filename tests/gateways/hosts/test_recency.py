from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest

from provisioner.gateways.errors import Unreachable
from provisioner.gateways.hosts.recency import newest_modification

OLD = 1_700_000_000.0


def age(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds), follow_symlinks=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for number in range(5):
        directory = root / f"d{number}" / "deep"
        directory.mkdir(parents=True)
        (directory / "file").write_text("x")
    for path in sorted(root.rglob("*"), reverse=True):
        age(path, OLD)
    age(root, OLD)
    return root


def test_an_edited_file_is_the_newest(tree: Path) -> None:
    age(tree / "d3" / "deep" / "file", OLD + 500)

    found = newest_modification(tree)

    assert found.newest_at == dt.datetime.fromtimestamp(OLD + 500, tz=dt.UTC)
    assert found.newest_path == "d3/deep/file"
    assert (found.directories, found.files) == (11, 5)
    assert found.is_complete


def test_a_removed_file_leaves_its_time_on_the_directory(tree: Path) -> None:
    (tree / "d1" / "deep" / "file").unlink()

    found = newest_modification(tree)

    assert found.newest_path == "d1/deep"
    assert found.newest_at is not None
    assert found.newest_at.timestamp() > OLD + 1


def test_it_stops_and_says_so(tree: Path) -> None:
    age(tree / "d4" / "deep" / "file", OLD + 500)

    found = newest_modification(tree, most_entries=12)

    assert not found.is_complete
    assert (found.directories, found.files) == (11, 1)


def test_files_of_directories_that_changed_last_come_first(tree: Path) -> None:
    age(tree / "d2" / "deep" / "file", OLD + 500)
    age(tree / "d2" / "deep", OLD + 400)

    found = newest_modification(tree, most_entries=12)

    assert found.newest_path == "d2/deep/file"


def test_no_time_at_all_is_none_left_for_files(tree: Path) -> None:
    found = newest_modification(tree, most_seconds=0)

    assert not found.is_complete
    assert found.newest_at is None


def test_links_lead_nowhere(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "young").write_text("x")
    (tree / "d0" / "link").symlink_to(outside)
    age(tree / "d0" / "link", OLD)
    age(tree / "d0", OLD)

    found = newest_modification(tree)

    assert found.newest_at == dt.datetime.fromtimestamp(OLD, tz=dt.UTC)
    assert found.is_complete


def test_a_root_that_is_a_link_is_refused(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree)

    with pytest.raises(Unreachable):
        newest_modification(link)
    with pytest.raises(Unreachable):
        newest_modification(tmp_path / "nothing")
