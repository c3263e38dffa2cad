"""A sample of owners: enough to tell, the same each time, and never through links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provisioner.gateways.hosts.sampling import OwnershipSample, sample_ownership

UID, GID = os.geteuid(), os.getegid()
needs_root = pytest.mark.skipif(UID != 0, reason="only root can give files away")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Forty directories on two levels with three files each: 161 entries."""
    for number in range(40):
        directory = tmp_path / f"d{number % 5}" / f"e{number}"
        directory.mkdir(parents=True)
        for name in "abc":
            (directory / name).touch()
    return tmp_path


def sample(root: Path, *, sample_size: int = 200) -> OwnershipSample:
    return sample_ownership(root, uid=UID, gid=GID, sample_size=sample_size)


def test_a_tree_of_one_owner_has_no_mismatch(tree: Path) -> None:
    assert sample(tree).mismatches == ()


def test_a_small_tree_is_visited_whole_and_each_entry_once(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").touch()

    assert sample(tmp_path).checked == 4


def test_no_more_is_visited_than_asked_for(tree: Path) -> None:
    assert sample(tree, sample_size=10).checked == 11  # and the root


def test_the_sample_is_the_same_each_time(tree: Path) -> None:
    first, again = (
        sample_ownership(tree, uid=UID + 1, gid=GID, sample_size=50) for _ in range(2)
    )

    assert first == again
    assert len(first.mismatches) == first.checked == 51


def test_a_mismatch_names_the_entry_and_its_owner(tmp_path: Path) -> None:
    found = sample_ownership(tmp_path, uid=UID + 1, gid=GID, sample_size=5)

    assert found.mismatches == (f"{tmp_path} belongs to {UID}:{GID}",)


@needs_root
@pytest.mark.parametrize("where", [".", "d0", "d4/e39", "d4/e39/c"])
@pytest.mark.parametrize(("uid", "gid"), [(20001, 0), (0, 20001)])
def test_one_wrong_owner_at_any_depth_is_seen(
    where: str, uid: int, gid: int, tree: Path
) -> None:
    os.chown(tree / where, uid, gid)

    assert len(sample(tree).mismatches) == 1


@needs_root
def test_links_are_visited_and_never_followed(tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    (strange / "inside").mkdir(parents=True)
    os.chown(strange, 20001, 20001)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(strange)

    assert sample(root) == OwnershipSample(checked=2, mismatches=())
    os.chown(root / "link", 20001, 20001, follow_symlinks=False)
    assert len(sample(root).mismatches) == 1
