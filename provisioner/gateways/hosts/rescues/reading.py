"""Open entries of a tree, and nothing outside of it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioner.gateways.hosts.descent import ENTER

STAT_BLOCK_BYTES = 512
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class CannotCheck(Exception):
    """An entry cannot be examined or read; see the classes below."""


class NotThere(CannotCheck):
    """Nothing has this name, or no longer has it."""


class BehindLink(CannotCheck):
    """A directory on the way is a symlink; `link` is its path from the root."""

    def __init__(self, link: str) -> None:
        super().__init__(link)
        self.link = link


class CannotRead(CannotCheck):
    """It exists but cannot be read; the argument is a sentence that says why."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """An entry of the tree. `fd` is open for reading if it is a file, else -1."""

    status: os.stat_result
    fd: int = -1
    link_target: str = ""

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return self.fd >= 0


@dataclass
class Tree:
    """A directory below which entries are opened, one component after the other.

    No component is followed if it is a link, and none is on another filesystem.
    Descriptors of directories on the way are kept, as entries in path order share them.
    If root may not read, as on a file server that squashes root, `uid` and `gid` are
    tried.
    """

    root_fd: int
    uid: int
    gid: int
    device: int = 0
    _way: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device = os.fstat(self.root_fd).st_dev

    @classmethod
    @contextlib.contextmanager
    def at(cls, root: Path) -> Iterator[Tree]:
        """Open a tree for the block, to be read with our own ids."""
        root_fd = os.open(root, ENTER)
        tree = cls(root_fd, uid=os.geteuid(), gid=os.getegid())
        try:
            yield tree
        finally:
            tree.close()
            os.close(root_fd)

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[Found]:
        """Open the entry at a path from the root, for the block.

        Raises: NotThere, BehindLink, CannotRead.
        """
        parts = _parts(path)
        with _translated():
            found = self._find(self._directory(parts[:-1]), parts[-1])
        try:
            yield found
        finally:
            if found.fd >= 0:
                os.close(found.fd)

    def size_of(self, path: str) -> int:
        """Return the size of a plain file at a path from the root, 0 for anything else.

        Raises: NotThere, BehindLink, CannotRead.
        """
        status = self._status(path)
        return status.st_size if stat.S_ISREG(status.st_mode) else 0

    def stored_bytes_of(self, path: str) -> int:
        """Return what a plain file takes without its holes, 0 for anything else.

        Raises: NotThere, BehindLink, CannotRead.
        """
        status = self._status(path)
        if not stat.S_ISREG(status.st_mode):
            return 0
        return min(status.st_size, status.st_blocks * STAT_BLOCK_BYTES)

    def has_content(self, path: str) -> bool:
        """Return whether a plain file or a link has this path from the root.

        Raises: NotThere, BehindLink, CannotRead.
        """
        mode = self._status(path).st_mode
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

    def identity_of(self, path: str) -> tuple[int, ...]:
        """Return values that change if the entry is replaced or modified.

        Raises: NotThere, BehindLink, CannotRead.
        """
        status = self._status(path)
        return (
            *(status.st_ino, status.st_mode, status.st_uid, status.st_gid),
            *(status.st_size, status.st_mtime_ns, status.st_ctime_ns),
        )

    def _status(self, path: str) -> os.stat_result:
        parts = _parts(path)
        with _translated():
            directory = self._directory(parts[:-1])
            return os.stat(parts[-1], dir_fd=directory, follow_symlinks=False)

    def close(self) -> None:
        """Close the directories that are kept open."""
        while self._way:
            os.close(self._way.pop()[1])

    def _directory(self, parts: list[str]) -> int:
        """Return a descriptor of the directory, which stays open for a while."""
        known = 0
        while known < min(len(parts), len(self._way)):
            if self._way[known][0] != parts[known]:
                break
            known += 1
        while len(self._way) > known:
            os.close(self._way.pop()[1])
        for part in parts[known:]:
            parent = self._way[-1][1] if self._way else self.root_fd
            self._way.append((part, self._enter(parent, part)))
        return self._way[-1][1] if self._way else self.root_fd

    def _enter(self, parent: int, name: str) -> int:
        try:
            fd = self._open(name, ENTER, parent)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    link = "/".join([part for part, _ in self._way] + [name])
                    raise BehindLink(link) from error
                raise NotThere from error
            raise
        if os.fstat(fd).st_dev != self.device:
            os.close(fd)
            raise CannotRead("It is on another file system, mounted there.")
        return fd

    def _find(self, directory: int, name: str) -> Found:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return Found(status=status, link_target=os.readlink(name, dir_fd=directory))
        if not stat.S_ISREG(status.st_mode):
            return Found(status=status)
        fd = self._open(name, _FILE, directory)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_dev != self.device:
            os.close(fd)
            raise CannotRead("It was replaced while it was opened.")
        return Found(status=status, fd=fd)

    def _open(self, name: str, flags: int, directory: int) -> int:
        try:
            return os.open(name, flags, dir_fd=directory)
        except PermissionError:
            if os.geteuid() != 0:
                raise
        with _acting_as(uid=self.uid, gid=self.gid):
            return os.open(name, flags, dir_fd=directory)


def signature(entries: list[dict[str, Any]], tree: Tree) -> str:
    """Return a digest of what is to be archived, and of the files' current state.

    Whatever changes a file, or replaces it, changes the digest.
    """
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(json.dumps([entry["path"], entry["kind"]]).encode())
        with contextlib.suppress(CannotCheck):
            is_now = tree.identity_of(entry["path"])
            digest.update(json.dumps(is_now).encode())
    return digest.hexdigest()


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if "\0" in path or {"", ".", ".."} & set(parts):
        raise CannotRead("It is outside the workspace.")
    return parts


@contextlib.contextmanager
def _acting_as(*, uid: int, gid: int) -> Iterator[None]:
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise NotThere from error
        if error.errno == errno.ELOOP:
            raise CannotRead(
                "It was replaced by a link while it was opened."
            ) from error
        raise CannotRead(f"{os.strerror(error.errno or 0)}.") from error
