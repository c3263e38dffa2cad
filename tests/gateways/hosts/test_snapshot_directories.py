"""What a file server shows as `.snapshot` is no part of a tree for our walks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.gateways.hosts.clearing import Versioned, clear_tree
from provisioner.gateways.hosts.file_digests import sample_files
from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.page_cache import forget
from provisioner.gateways.hosts.recency import newest_modification
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.root_paths import sample_root_paths
from provisioner.gateways.hosts.sampling import sample_ownership
from provisioner.gateways.hosts.snapshot_files import compare_with_snapshot
from provisioner.gateways.hosts.tree_remarks import remarks_on_tree
from provisioner.gateways.hosts.trees.run import Walker
from provisioner.gateways.hosts.untracked import leaves_below
from tests.gateways.hosts.trees import (
    GROUP,
    OWNER,
    needs_root,
)
from tests.support.rescue_archives import archive, rows_of, untracked
from tests.support.snapshot_directories import KINDS, OTHER_DAY, shown_in


@pytest.fixture(params=KINDS)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A volume as NFSv3 shows it: listed at the root, and there further below, too."""
    root = tmp_path / "clone"
    with shown_in(root, root / "src", kind=request.param):
        for place in (root, root / "src"):
            (place / "file.c").write_text("x")
        yield root


def kept(root: Path) -> list[str]:
    """Return what snapshots still have, wherever they are."""
    return [path.read_text() for path in sorted(root.rglob(".snapshot/hourly.0/old.c"))]


@needs_root
def test_it_is_not_given_away(tree: Path, walker: Walker) -> None:
    report = change_ownership(tree, uid=OWNER, gid=GROUP, walker=walker)

    assert (report.failed_count, report.entries) == (0, 4)
    for snapshots in tree.rglob(".snapshot"):
        assert (snapshots / "hourly.0" / "old.c").stat().st_uid == os.geteuid()
    sample = sample_ownership(tree, uid=OWNER, gid=GROUP, sample_size=100)
    assert (sample.checked, sample.mismatches) == (4, ())


def test_it_is_not_removed_and_keeps_nothing_else(tree: Path, walker: Walker) -> None:
    before = kept(tree)

    report = remove_contents(tree, walker=walker)

    assert report.failed_count == 0
    assert kept(tree) == before
    assert sorted(p.name for p in tree.rglob("*") if p.name == "file.c") == []


def test_nobody_finds_work_in_it(tree: Path) -> None:
    assert sorted(leaves_below(tree)) == [b"file.c", b"src/file.c"]


def test_nobody_was_at_work_in_it(tree: Path) -> None:
    newest = newest_modification(tree)

    assert newest.newest_at is not None
    assert newest.newest_at.timestamp() < OTHER_DAY
    assert (newest.directories, newest.files) == (2, 2)


def test_none_of_its_pages_are_forgotten(tree: Path) -> None:
    assert forget([tree]) == 2


def test_no_remark_is_about_it(tree: Path) -> None:
    assert sample_root_paths(tree) == []
    assert [found for found in remarks_on_tree(tree) if ".snapshot" in found.path] == []


def test_a_sample_of_files_has_none_of_a_snapshot(tree: Path) -> None:
    assert not [f for f in sample_files(tree, seed="1") if ".snapshot" in f.path]


def test_no_difference_is_in_it(tree: Path) -> None:
    earlier = tree.parent / "earlier"
    (earlier / "src").mkdir(parents=True)

    found = compare_with_snapshot(
        earlier, tree, most_named=9, most_entries=99, on_progress=lambda seen: None
    )

    assert found.added == ["file.c", "src/file.c"]


def test_a_clean_build_leaves_it_alone(tree: Path) -> None:
    before, keep = kept(tree), Versioned(tree)
    keep.add(str(tree / "src/file.c"))

    report = clear_tree(tree, keep=keep)

    assert (report.removed, report.failures) == (1, ())
    assert kept(tree) == before
    assert (tree / "src/file.c").exists()


def test_no_archive_has_it(tree: Path) -> None:
    (tree.parent / "rescue").mkdir()
    found = [os.fsdecode(path) for path in leaves_below(tree)]

    report = archive(tree, untracked(*found))

    assert not report.problems
    assert sorted(rows_of(report)) == ["file.c", "src/file.c"]
