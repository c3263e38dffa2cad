"""A template hands nobody's privileges on to those who clone it."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from provisioner.gateways.hosts.tree_remarks import remarks_on_tree
from tests.gateways.hosts.trees import CHOWN


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def privileged(root: Path) -> dict[str, str]:
    return {f.path: str(f) for f in remarks_on_tree(root) if f.kind == "privileged"}


@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o4755, "set-uid"), (0o2755, "set-gid"), (0o6711, "set-uid and set-gid")],
)
def test_bits_are_removed_and_named(mode: int, words: str, tmp_path: Path) -> None:
    below = tmp_path / "bin"
    below.mkdir()
    tool = below / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(mode)

    found = privileged(tmp_path)

    assert mode_of(tool) == mode & 0o1777
    assert list(found) == ["bin/tool"]
    assert f"bin/tool was {words}. That was removed" in found["bin/tool"]
    assert privileged(tmp_path) == {}


def test_what_gives_no_privileges_stays_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o2775)
    plain = tmp_path / "plain"
    plain.touch(mode=0o644)
    (tmp_path / "link").symlink_to("/bin/su")
    os.mkfifo(tmp_path / "pipe")

    assert privileged(tmp_path) == {}
    assert mode_of(directory) == 0o2775
    assert mode_of(plain) == 0o644


def test_all_names_of_a_file_lose_them_at_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    os.link(one, other)
    one.chmod(0o4755)

    assert len(privileged(tmp_path)) == 1
    assert mode_of(one) == mode_of(other) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives capabilities")
@pytest.mark.parametrize("mode", [0o755, 0o644, 0o000])
def test_capabilities_are_removed(mode: int, tmp_path: Path) -> None:
    """Also of what cannot be run: its owner can have it run, and chmod keeps them."""
    tool = tmp_path / "tool"
    tool.touch()
    tool.chmod(mode)
    os.setxattr(tool, "security.capability", CHOWN)

    assert "given capabilities" in privileged(tmp_path)["tool"]
    assert "security.capability" not in os.listxattr(tool)


def test_a_tree_deeper_than_a_path_may_be_long(tmp_path: Path) -> None:
    """What path names cannot reach is checked like everything else."""
    root = tmp_path / "deep"
    root.mkdir()
    name = "d" * 200
    fd = os.open(root, os.O_RDONLY)
    for _ in range(60):  # 12,000 bytes
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("tool", os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=fd))
    os.chmod("tool", 0o4755, dir_fd=fd)  # noqa: S103 - what is to be found
    try:
        [path] = privileged(root)
        assert path.endswith("/tool")
        assert len(path) > 12_000
        assert stat.S_IMODE(os.stat("tool", dir_fd=fd).st_mode) == 0o755
    finally:
        os.close(fd)
        subprocess.run(["rm", "-rf", str(root)], check=True)


def test_snapshots_of_the_file_server_are_no_part_of_the_tree(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "sub"):
        below = directory / ".snapshot" / "hourly.0"
        below.mkdir(parents=True)
        (below / "tool").touch()
        (below / "tool").chmod(0o4755)

    assert remarks_on_tree(tmp_path) == []
    assert mode_of(tmp_path / "sub/.snapshot/hourly.0/tool") == 0o4755
