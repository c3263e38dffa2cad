"""Going through a tree by descriptors: at any depth, and never out of it.

A path has at most 4,096 bytes, a tree has no such limit. One directory is open at a
time; the way back up is `..`, which has to lead to where we came from. Symbolic links
are entries and no ways, other filesystems are not entered, and what a file server shows
as `.snapshot` is not part of the tree.

Source: openat(2), path_resolution(7); `.snapshot` in every directory of an NFS mount:
NetApp, "Make snapshot copies visible to clients".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.errors import Busy

SNAPSHOTS = ".snapshot"
ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class Directory:
    """A directory of a tree, open as `fd` until the next one is asked for.

    `path` is from the root, "" for the root itself.
    """

    fd: int
    path: str
    entries: list[os.DirEntry[str]]

    def path_of(self, name: str) -> str:
        """Return the path of one of its entries from the root."""
        return f"{self.path}/{name}" if self.path else name


@dataclass
class _Level:
    """A directory on the way to the present one, and where to go from it."""

    name: str
    identity: tuple[int, int]
    waiting: list[str]


def directories(
    root: Path, *, on_closed: Callable[[str], None] | None = None
) -> Iterator[Directory]:
    """Yield each directory below `root`, itself first.

    One that vanishes meanwhile is passed over. One that we may not enter is told to
    `on_closed` by its path; without that it ends the walk. Who changes the tree while
    it is gone through, so that `..` leads elsewhere, ends the walk.

    Raises: OSError, Busy.
    """
    fd = os.open(root, ENTER)
    try:
        device = os.fstat(fd).st_dev
        levels: list[_Level] = []
        name = ""
        while True:
            found = _listed(fd)
            levels.append(_Level(name, _identity(fd), _subdirectories(found)))
            here = "/".join(level.name for level in levels[1:])
            yield Directory(fd=fd, path=here, entries=found)
            below: int | None = None
            while below is None:
                while not levels[-1].waiting:
                    levels.pop()
                    if not levels:
                        return
                    fd = _up(fd, to=levels[-1], way=levels, root=root)
                name = levels[-1].waiting.pop()
                try:
                    below = _entered(name, above=fd, device=device)
                except PermissionError:
                    if on_closed is None:
                        raise
                    on_closed("/".join([*(level.name for level in levels[1:]), name]))
            os.close(fd)
            fd = below
    finally:
        os.close(fd)


def _listed(fd: int) -> list[os.DirEntry[str]]:
    with os.scandir(fd) as entries:
        return [entry for entry in entries if entry.name != SNAPSHOTS]


def _subdirectories(entries: list[os.DirEntry[str]]) -> list[str]:
    return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _entered(name: str, *, above: int, device: int) -> int | None:
    """Return a subdirectory, open; None where it is gone, or another filesystem."""
    try:
        fd = os.open(name, ENTER, dir_fd=above)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if os.fstat(fd).st_dev == device:
        return fd
    os.close(fd)
    return None


def _up(fd: int, *, to: _Level, way: list[_Level], root: Path) -> int:
    try:
        above = os.open("..", ENTER, dir_fd=fd)
    except PermissionError:  # one that may be read, and not gone through
        above = _down(root, [level.name for level in way[1:]])
    if _identity(above) != to.identity:
        os.close(above)
        path = "/".join(level.name for level in way[1:])
        raise Busy(
            f"Directories below {path or 'the root'} were moved while they were gone "
            "through.",
            system="host",
            operation="descend",
        )
    os.close(fd)
    return above


def _down(root: Path, names: list[str]) -> int:
    fd = os.open(root, ENTER)
    for name in names:
        above = fd
        try:
            fd = os.open(name, ENTER, dir_fd=above)
        finally:
            os.close(above)
    return fd


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
