"""The directory that an archive is written into, until it gets its final name."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provisioner.gateways.hosts.descent import ENTER
from provisioner.gateways.hosts.room import Lack, lack_at

Json = dict[str, Any]

_CODES = {
    errno.ENOSPC: ("rescue_disk_full", "there is no space left"),
    errno.EDQUOT: ("rescue_over_quota", "its quota is used up"),
    errno.EFBIG: (
        "rescue_file_too_big",
        "the file system does not allow files of this size",
    ),
    errno.EROFS: ("rescue_read_only", "it is read-only"),
    errno.ENOENT: ("rescue_root_missing", "it does not exist"),
    errno.ENOTDIR: ("rescue_root_missing", "it is not a directory"),
    errno.ELOOP: ("rescue_root_missing", "it is a symbolic link"),
    errno.EACCES: ("rescue_not_permitted", "this host may not write there"),
    errno.EPERM: ("rescue_not_permitted", "this host may not write there"),
}

_NO_INODES = ("rescue_out_of_inodes", "its file system has no inodes left")
FILES_OF_AN_ARCHIVE = 8  # fewer, in fact


class NoPlace(Exception):
    """The rescue area does not accept the archive; `code` is stable."""

    def __init__(self, sentence: str, *, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class Place:
    """A directory under a temporary name, which gets its final name when complete."""

    def __init__(self, order: Json) -> None:
        self._root: str = order["rescue_root"]
        self._owner: str = order["owner"]
        self._name: str = order["name"]
        self._uid: int = order["uid"]
        self._gid: int = order["gid"]
        self._leftover = re.compile(order["leftover"], re.DOTALL)
        self._partial = f".{self._name}.partial"
        self._owner_was_made = False
        self._owner_fd = -1
        self.directory = -1

    @property
    def path(self) -> str:
        return os.path.join(self._root, self._owner, self._name)

    @classmethod
    @contextlib.contextmanager
    def prepared(cls, order: Json) -> Iterator[Place]:
        """Provide an empty directory. If anything goes wrong, nothing is left.

        The leftover of an earlier attempt is removed first.

        Raises: NoPlace.
        """
        place = cls(order)
        try:
            with place.translated():
                place._prepare()
            yield place
        except BaseException:
            place._abandon()
            raise

    @classmethod
    def clear(cls, order: Json) -> None:
        """Remove what killed attempts left; ignore what cannot be removed."""
        place = cls(order)
        with contextlib.suppress(OSError):
            path = os.path.join(place._root, place._owner)
            place._owner_fd = os.open(path, ENTER)
            try:
                for name in os.listdir(place._owner_fd):
                    if place._leftover.fullmatch(name):
                        with contextlib.suppress(OSError):
                            place._remove(name)
            finally:
                os.close(place._owner_fd)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of the file system into a refusal.

        Raises: NoPlace.
        """
        try:
            yield
        except OSError as error:
            code, reason = _CODES.get(
                error.errno or 0,
                ("rescue_failed", os.strerror(error.errno or 0).lower()),
            )
            if error.errno == errno.ENOSPC and self._lacks_inodes():
                code, reason = _NO_INODES
            raise self._refused(reason, code=code) from error

    def require_room(self, wanted_bytes: int) -> None:
        """Refuse an archive that does not fit, before anything is written.

        Raises: NoPlace.
        """
        system = os.fstatvfs(self.directory)
        if system.f_files and system.f_favail < FILES_OF_AN_ARCHIVE:
            code, reason = _NO_INODES
            raise self._refused(reason, code=code)
        free_bytes = system.f_bavail * system.f_frsize
        if wanted_bytes > free_bytes:
            raise self._refused(
                f"it takes {wanted_bytes / 1e6:,.0f} MB, and {free_bytes / 1e6:,.0f} "
                "MB are free",
                code="rescue_disk_full",
            )

    def _refused(self, reason: str, *, code: str) -> NoPlace:
        return NoPlace(
            f"The work cannot be rescued to {self._root}: {reason}. Nothing was "
            "written there and nothing was deleted.",
            code=code,
        )

    def _lacks_inodes(self) -> bool:
        with contextlib.suppress(OSError):
            return lack_at(Path(self._root)) == Lack.INODES
        return False

    def publish(self) -> None:
        """Give the directory to its owner, and then its final name.

        Raises: NoPlace.
        """
        with self.translated():
            for name in os.listdir(self.directory):
                self._give(name)
            if os.geteuid() == 0:
                os.fchown(self.directory, self._uid, self._gid)
            os.fsync(self.directory)
            os.rename(
                self._partial,
                self._name,
                src_dir_fd=self._owner_fd,
                dst_dir_fd=self._owner_fd,
            )
            os.fsync(self._owner_fd)
            # The directory above belongs to the owner, who may have replaced it.
            found = os.stat(self._name, dir_fd=self._owner_fd, follow_symlinks=False)
        if not os.path.samestat(found, os.fstat(self.directory)):
            raise NoPlace(
                f"{self.path} was replaced while it was written.",
                code="rescue_replaced",
            )

    def _prepare(self) -> None:
        root = os.open(self._root, ENTER)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._owner, 0o700, dir_fd=root)
                self._owner_was_made = True
            self._owner_fd = os.open(self._owner, ENTER, dir_fd=root)
            if self._owner_was_made and os.geteuid() == 0:
                os.fchown(self._owner_fd, self._uid, self._gid)
        finally:
            os.close(root)
        for name in os.listdir(self._owner_fd):
            if self._leftover.fullmatch(name):
                self._remove(name)
        os.mkdir(self._partial, 0o700, dir_fd=self._owner_fd)
        self.directory = os.open(self._partial, ENTER, dir_fd=self._owner_fd)

    def _give(self, name: str) -> None:
        fd = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.directory
        )
        try:
            if os.geteuid() == 0:
                os.fchown(fd, self._uid, self._gid)
        finally:
            os.close(fd)

    def _remove(self, name: str) -> None:
        """Remove a directory that contains only plain files."""
        fd = os.open(name, ENTER, dir_fd=self._owner_fd)
        try:
            for inner in os.listdir(fd):
                os.unlink(inner, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=self._owner_fd)

    def _abandon(self) -> None:
        with contextlib.suppress(OSError):
            if self.directory >= 0:
                self._remove(self._partial)
        if self._owner_was_made:
            # Only if it is empty.
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(self._root, self._owner))
