"""Paths below a mount root, and the mounts of this host."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from provisioner.gateways.errors import Busy, Refused, Unreachable
from provisioner.gateways.hosts.mounts import (
    MOST_NFS_USES,
    Mount,
    NfsUse,
    find_mount,
    has_mounts_below,
    is_whole_filesystem,
    nfs_uses,
    path_below,
    uses_of,
    wait_until_gone,
    wait_until_visible,
)
from tests.gateways.hosts.trees import bind_mounted, needs_root, volume_of_its_own


def test_a_junction_is_below_the_mount_root(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    assert path_below(tmp_path, junction_path="/ws/alice") == tmp_path / "ws/alice"


@pytest.mark.parametrize(
    "junction", ["", "/", "ws", "/ws/../etc", "/ws/./a", "//ws", "/ws/", "/a\0b"]
)
def test_what_is_no_junction_path_is_refused(tmp_path: Path, junction: str) -> None:
    with pytest.raises(Refused, match="not a junction path"):
        path_below(tmp_path, junction_path=junction)


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root/ws").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        path_below(tmp_path / "root", junction_path="/ws/alice")


def test_a_junction_that_is_our_own_link_is_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir(mode=0o755)
    (tmp_path / "volume").mkdir()
    (tmp_path / "root/ws").symlink_to(tmp_path / "volume")
    assert path_below(tmp_path / "root", junction_path="/ws") == tmp_path / "volume"


def test_a_link_that_somebody_else_could_have_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root").chmod(0o777)
    (tmp_path / "root/ws").symlink_to("/etc")
    with pytest.raises(Refused, match="a user other than"):
        path_below(tmp_path / "root", junction_path="/ws")


@needs_root
def test_somebody_elses_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ws").symlink_to("/etc")
    os.lchown(tmp_path / "ws", 5001, 5001)
    with pytest.raises(Refused, match="a user other than"):
        path_below(tmp_path, junction_path="/ws")


def test_find_mount_is_what_holds_a_path(tmp_path: Path) -> None:
    assert find_mount(tmp_path / "absent") is None
    proc = find_mount(Path("/proc/self/fd"))
    assert proc is not None
    assert (proc.mount_point, proc.fs_type) == (Path("/proc"), "proc")


@needs_root
def test_mounts_are_seen_below_any_name(tmp_path: Path) -> None:
    clone = tmp_path / "a b\\c"
    (clone / "inside").mkdir(parents=True)
    with bind_mounted(tmp_path, clone / "inside"):
        assert has_mounts_below(str(clone))
        assert not has_mounts_below(str(clone / "inside"))
        found = find_mount(clone / "inside")
        assert found is not None
        assert found.mount_point == clone / "inside"
    with bind_mounted(tmp_path, clone):
        assert not has_mounts_below(str(clone))
    assert not has_mounts_below(str(clone))


@needs_root
def test_a_mount_below_a_later_one_is_hidden(tmp_path: Path) -> None:
    clone, other = tmp_path / "clone", tmp_path / "other"
    (clone / "inside").mkdir(parents=True)
    (other / "inside").mkdir(parents=True)
    with bind_mounted(other, clone / "inside"), bind_mounted(other, clone):
        found = find_mount(clone / "inside")
        assert found is not None
        assert found.mount_point == clone


def test_waits_until_a_directory_is_visible(tmp_path: Path) -> None:
    appears = threading.Timer(0.05, (tmp_path / "ws").mkdir)
    appears.start()
    wait_until_visible(tmp_path / "ws", timeout_seconds=10)
    appears.join()
    with pytest.raises(Unreachable, match="did not appear"):
        wait_until_visible(tmp_path / "never", timeout_seconds=0.05)


def test_waits_until_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    vanishes = threading.Timer(0.05, (tmp_path / "ws").rmdir)
    vanishes.start()
    wait_until_gone(tmp_path / "ws", timeout_seconds=10)
    vanishes.join()
    with pytest.raises(Busy, match="still there"):
        wait_until_gone(tmp_path, timeout_seconds=0.05)


@needs_root
def test_a_volume_is_a_whole_filesystem_and_a_directory_is_not(tmp_path: Path) -> None:
    with volume_of_its_own(tmp_path / "volume"):
        (tmp_path / "volume/directory").mkdir()
        (tmp_path / "bound").mkdir()
        assert is_whole_filesystem(str(tmp_path / "volume"))
        assert not is_whole_filesystem(str(tmp_path / "volume/directory"))
        with bind_mounted(tmp_path / "volume/directory", tmp_path / "bound"):
            assert not is_whole_filesystem(str(tmp_path / "bound"))


def nfs(at: str, *options: str, fs_type: str = "nfs") -> Mount:
    return Mount(
        mount_point=Path(at),
        root="/",
        fs_type=fs_type,
        source="filer:/vol",
        options=("rw", *options, "addr=10.0.0.1"),
    )


def test_mounts_of_nfs_with_the_same_options_are_one_use() -> None:
    uses = uses_of(
        [
            nfs("/clones/ws/a", "vers=3", "hard"),
            nfs("/clones/ws/b", "vers=3", "hard"),
            nfs("/clones/ws/c", "vers=3", "hard", "local_lock=all"),
            nfs("/home", "vers=4.1", "soft", "timeo=600", fs_type="nfs4"),
            nfs("/", fs_type="xfs"),
        ]
    )

    assert uses == [
        NfsUse(at="/clones/ws", options=("vers=3", "hard"), mounts=2),
        NfsUse(
            at="/clones/ws/c", options=("vers=3", "hard", "local_lock=all"), mounts=1
        ),
        NfsUse(at="/home", options=("vers=4.1", "soft"), mounts=1),
    ]


def test_of_very_many_uses_a_few_are_told() -> None:
    many = [nfs(f"/{number}/a", "vers=3") for number in range(MOST_NFS_USES + 9)]
    assert len(uses_of(many)) == MOST_NFS_USES


def test_a_host_may_use_no_nfs() -> None:
    assert uses_of([]) == []
    assert len(nfs_uses()) <= MOST_NFS_USES
