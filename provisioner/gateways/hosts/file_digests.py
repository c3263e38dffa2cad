"""Digests of a few files of a tree, by which a copy of it elsewhere is recognized."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.descent import ENTER, open_directory, reached
from provisioner.gateways.snapshot_directories import SNAPSHOTS

MOST_FILES = 32
READ_BYTES = 2**20
_DEEPEST = 64
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class FileDigest:
    """A regular file: its path from the root, its size, and what is in it.

    `digest` is the SHA-256 of its first megabyte.
    """

    path: str
    bytes: int
    digest: str


def sample_files(root: Path, *, seed: str) -> list[FileDigest]:
    """Return the digests of up to 32 files of a tree, by path.

    A descent from the root leads to each, so that no tree is read as a whole. The same
    seed leads to the same files. No link is followed.

    Raises: OSError.
    """
    rng = random.Random(seed)
    root_fd = os.open(root, ENTER)
    try:
        found = [_descend(root_fd, rng) for _ in range(MOST_FILES)]
        digests = [_digest(root_fd, names) for names in {tuple(n) for n in found if n}]
    finally:
        os.close(root_fd)
    return sorted(filter(None, digests), key=lambda each: each.path)


def differing_files(root: Path, expected: Iterable[FileDigest]) -> list[str]:
    """Return the paths of those files that are missing below `root`, or differ.

    Raises: OSError.
    """
    root_fd = os.open(root, ENTER)
    try:
        return [
            each.path
            for each in expected
            if _digest(root_fd, tuple(each.path.split("/"))) != each
        ]
    finally:
        os.close(root_fd)


def _descend(root_fd: int, rng: random.Random) -> list[str]:
    """Return the names that lead to a file, or [] where the way ends without one."""
    names: list[str] = []
    while len(names) < _DEEPEST:
        try:
            with reached(root_fd, names) as fd, os.scandir(fd) as listing:
                entries = sorted(
                    (each.name, each.is_dir(follow_symlinks=False))
                    for each in listing
                    if each.name != SNAPSHOTS
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        if not entries:
            return []
        name, is_directory = rng.choice(entries)
        names.append(name)
        if not is_directory:
            return names
    return []


def _digest(root_fd: int, names: tuple[str, ...]) -> FileDigest | None:
    """Return the digest of a regular file; None if there is none of that name."""
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        reached(root_fd, names[:-1], enter=open_directory) as above,
    ):
        status = os.stat(names[-1], dir_fd=above, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(os.open(names[-1], _FILE, dir_fd=above), "rb") as file:
            read = file.read(READ_BYTES)
        return FileDigest(
            path="/".join(names),
            bytes=status.st_size,
            digest=hashlib.sha256(read).hexdigest(),
        )
    return None
