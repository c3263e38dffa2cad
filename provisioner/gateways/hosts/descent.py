"""Walk a tree by descriptors: to any depth, and never out of it.

A path has at most 4,096 bytes, a tree has no such limit. One directory is open at a
time. The way back up is `..`, which must lead to where we came from. Symbolic links are
not followed, other filesystems are not entered, and a file server's `.snapshot` is not
part of the tree.

Source: openat(2), path_resolution(7).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from provisioner.gateways.errors import Busy
from provisioner.gateways.snapshot_directories import SNAPSHOTS

ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class Directory:
    """A directory of a tree, open as `fd` until the next one is requested.

    `path` is relative to the root, "" for the root itself.
    """

    fd: int
    path: str
    entries: list[os.DirEntry[str]]

    def path_of(self, name: str) -> str:
        """Return the path of an entry from the root."""
        return f"{self.path}/{name}" if self.path else name


def directories(
    root: Path, *, on_closed: Callable[[str], None] | None = None
) -> Iterator[Directory]:
    """Yield each directory below `root`, and first the root itself.

    A directory that vanishes is skipped. The path of one that we may not enter is
    passed to `on_closed`, or ends the walk if there is none. If somebody moves
    directories during the walk, so that `..` leads elsewhere, the walk ends.

    Raises: OSError, Busy.
    """
    with contextlib.closing(Descent(os.open(root, ENTER))) as at:
        yield _listed(at)
        while at.levels:
            waiting = at.levels[-1].waiting
            if not waiting:
                _leave(at)
                continue
            name = waiting.pop()
            try:
                is_ours = at.enter(name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError:
                if on_closed is None:
                    raise
                on_closed("/".join(at.names_to(name)))
                continue
            if is_ours:
                yield _listed(at)


def _listed(at: Descent) -> Directory:
    with os.scandir(at.fd) as entries:
        found = [entry for entry in entries if entry.name != SNAPSHOTS]
    at.levels[-1].waiting = [e.name for e in found if e.is_dir(follow_symlinks=False)]
    return Directory(fd=at.fd, path="/".join(at.names_to()), entries=found)


def _leave(at: Descent) -> None:
    try:
        at.leave()
    except FileNotFoundError as error:
        raise Busy(
            f"Directories below {'/'.join(at.names_to()) or 'the root'} were moved "
            "while they were read.",
            system="host",
            operation="descend",
        ) from error


@dataclass
class Level:
    """A directory on the way to the current one, and its subdirectories still to visit.

    `stays` means that it contains something that must not be removed.
    """

    name: str
    identity: tuple[int, int]
    waiting: list[str] = field(default_factory=list)
    stays: bool = False


class Descent:
    """The directory open as `fd`, and the way to it: `levels`, the root first.

    The caller closes the root. With `minds_mounts`, other mounts of the same filesystem
    are told apart from the root's.
    """

    def __init__(self, root_fd: int, *, minds_mounts: bool = False) -> None:
        self.root_fd = root_fd
        self._mount_id = mount_id_of(root_fd) if minds_mounts else None
        self.fd = os.dup(root_fd)
        self.levels = [Level("", _identity(root_fd))]

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.root_fd)

    def names_to(self, *names: str) -> list[str]:
        """Return the names that lead from the root to here, followed by these."""
        return [*(level.name for level in self.levels[1:]), *names]

    def enter(self, name: str) -> bool:
        """Enter a directory; return False, and stay, if it is on another filesystem.

        Raises: OSError.
        """
        below = open_directory(name, dir_fd=self.fd)
        is_ours = self._is_ours(below)
        if is_ours:
            self.levels.append(Level(name, _identity(below)))
            self.fd, below = below, self.fd
        os.close(below)
        return is_ours

    def has(self, name: str) -> bool:
        """Return whether a name is on our filesystem, with nothing mounted on it.

        Raises: OSError.
        """
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return self._is_ours(fd)
        finally:
            os.close(fd)

    def _is_ours(self, fd: int) -> bool:
        return os.fstat(fd).st_dev == self.levels[0].identity[0] and (
            self._mount_id is None or mount_id_of(fd) == self._mount_id
        )

    def leave(self) -> None:
        """Return to the directory from which the current one was entered.

        Raises: OSError; FileNotFoundError if that has been moved. Only directories
        above it can then be reached, by leaving again.
        """
        self.levels.pop()
        if self.levels:
            above = self._open_above()
            os.close(self.fd)
            self.fd = above

    def _open_above(self) -> int:
        identity = self.levels[-1].identity
        with contextlib.suppress(PermissionError):  # it may be read, but not entered
            above = open_directory("..", dir_fd=self.fd)
            if _identity(above) == identity:
                return above
            os.close(above)
        with reached(self.root_fd, self.names_to()) as above:
            if _identity(above) != identity:
                raise FileNotFoundError(errno.ENOENT, "another took its name")
            return os.dup(above)


def open_directory(name: str | bytes, *, dir_fd: int) -> int:
    """Open a directory by its name in another one; never a link.

    Raises: OSError.
    """
    return os.open(name, ENTER, dir_fd=dir_fd)


@contextmanager
def reached(
    root_fd: int,
    names: Sequence[str] | Sequence[bytes],
    *,
    enter: Callable[..., int] = open_directory,
) -> Iterator[int]:
    """Open the directory to which these names lead from the root.

    Raises: OSError.
    """
    fd = os.dup(root_fd)
    try:
        for name in names:
            below = enter(name, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def mount_id_of(fd: int) -> int:
    """Return the mount through which a descriptor was opened; a bind mount has its own.

    Source: mnt_id in proc_pid_fdinfo(5).
    """
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line[:7] == "mnt_id:")


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
