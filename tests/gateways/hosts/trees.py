"""Small trees to own and to remove, and what is true of them afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from provisioner.gateways.hosts.trees import native
from provisioner.gateways.hosts.trees.run import Walker

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may chown")

OWNER, GROUP = 5001, 5002

# Capability CAP_CHOWN, effective and permitted; struct vfs_cap_data of the kernel.
CHOWN = bytes.fromhex("0100000201000000000000000000000000000000")

WALKERS: tuple[Walker, ...] = ("compiled", "sequential")


def walker_or_skip(walker: Walker) -> Walker:
    """Build the compiled walk where it is asked for; skip where there is no compiler.

    One that is there and cannot compile it is a failure.
    """
    if walker == "compiled":
        if shutil.which("cc") is None:
            pytest.skip("no C compiler here")
        native.build()
    return walker


def plant(root: Path, *, directories: int = 3, files: int = 4) -> int:
    """Make a tree two levels deep; return how many entries it has with its root."""
    root.mkdir()
    for outer in range(directories):
        for inner in range(directories):
            directory = root / f"outer{outer}" / f"inner{inner}"
            directory.mkdir(parents=True)
            for number in range(files):
                os.mknod(f"{directory}/file{number}", 0o644)  # touch, but fast
    return 1 + directories + directories**2 * (1 + files)


def owners_below(root: Path) -> set[tuple[int, int]]:
    """Return every (uid, gid) in a tree, the root and links themselves included."""
    found = {(root.lstat().st_uid, root.lstat().st_gid)}
    for directory, names, files in os.walk(os.fsencode(root)):
        for name in (*names, *files):
            status = os.lstat(os.path.join(directory, name))
            found.add((status.st_uid, status.st_gid))
    return found


@contextmanager
def bind_mounted(source: Path, target: Path) -> Iterator[None]:
    """Mount a directory or file over another; skip where that is not allowed."""
    done = subprocess.run(["mount", "--bind", source, target], capture_output=True)
    if done.returncode != 0:
        pytest.skip("bind mounts are not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", target], check=True)


@dataclass(frozen=True)
class Chain:
    """Directories in directories, each with another one beside it."""

    root: Path
    end_fd: int
    entries: int


@contextmanager
def deep_chain(root: Path, *, depth: int, name: str = "next") -> Iterator[Chain]:
    """Make a chain and take it away again, which most programs cannot."""
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=here)
            os.mkdir("side", dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("last", os.O_CREAT, dir_fd=here))
        yield Chain(root, here, 2 * depth + 2)
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", root], check=True)


@contextmanager
def volume_of_its_own(root: Path) -> Iterator[None]:
    """Mount an empty filesystem, as a clone is one; skip where not allowed."""
    root.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "t", root], capture_output=True)
    if done.returncode != 0:
        pytest.skip("mounts are not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", root], check=True)
