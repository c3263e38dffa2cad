"""btrfs simple quotas: the bytes that each subvolume has added to the filesystem.

A limit holds a subvolume to so many of them.

An extent counts for the subvolume that wrote it, however many share it, so the bytes of
all subvolumes, including deleted ones, add up to what is used.

Source: linux/btrfs.h and btrfs_tree.h; needs Linux 6.7.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from provisioner.lab.ontap.dataplane.kernel import ioctl

_QUOTA_CTL = 0xC0109428
_TREE_SEARCH = 0xD0009411
_GET_SUBVOL_INFO = 0x81F8943C
_QGROUP_LIMIT = 0x8030942B
_FS_INFO = 0x8400941F
_ENABLE_SIMPLE = 4
_MAX_REFERENCED = 1
_QUOTA_TREE, _QGROUP_INFO = 8, 242
_KEY, _HEADER, _ITEM = "7Q4I4Q", "3Q2I", "5Q"
_ARGUMENT_BYTES = 4096
# In what _GET_SUBVOL_INFO gives: after the id, the name and two more ids.
_GENERATION_AT = 8 + 256 + 8 + 8
_ANY = (1 << 64) - 1
_INODE_ITEM, _ROOT_DIRECTORY = 1, 256
_MOST_INODES, _LAST_OBJECT = 1 << 48, (1 << 64) - 257
# A commit falls between two reads at most once in seconds.
_MOST_READS = 10

_libc = ctypes.CDLL(None, use_errno=True)


def enable_quotas(path: Path) -> bool:
    """Enable counting by subvolume; return whether the filesystem supports it.

    Safe to repeat. Only what is written afterwards counts, so call it before the first
    file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        argument = bytearray(struct.pack("QQ", _ENABLE_SIMPLE, 0))
        ioctl(descriptor, _QUOTA_CTL, argument)
    except OSError as error:
        return error.errno == errno.EEXIST
    finally:
        os.close(descriptor)
    return True


def bytes_by_subvolume(path: Path) -> dict[int, int]:
    """Return the bytes of every subvolume by its id, after writing out pending data.

    Raises: OSError if the filesystem does not count.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _libc.syncfs(descriptor)
        return _search(descriptor)
    finally:
        os.close(descriptor)


def _search(descriptor: int) -> dict[int, int]:
    found: dict[int, int] = {}
    first = 0
    while True:
        limits = (_QUOTA_TREE, 0, 0, first, _ANY, 0, _ANY)
        key = struct.pack(_KEY, *limits, _QGROUP_INFO, _QGROUP_INFO, 4096, *[0] * 5)
        argument = bytearray(key.ljust(_ARGUMENT_BYTES, b"\0"))
        ioctl(descriptor, _TREE_SEARCH, argument)
        (count,) = struct.unpack_from("I", argument, 64)
        if count == 0:
            return found
        position = struct.calcsize(_KEY)
        for _ in range(count):
            header = struct.unpack_from(_HEADER, argument, position)
            _transaction, _object, identity, _type, length = header
            position += struct.calcsize(_HEADER)
            item = struct.unpack_from(_ITEM, argument, position)
            _generation, _referenced, _compressed, exclusive, _ = item
            found[identity] = exclusive
            position += length
            first = identity + 1


def subvolume_id(path: Path) -> int:
    """Return the id of the subvolume at `path`. Raises: OSError if it is none."""
    return _subvolume_number(path, at=0)


def subvolume_generation(path: Path) -> int:
    """Return a number that grows with each commit that changed the subvolume.

    Raises: OSError if it is none.
    """
    return _subvolume_number(path, at=_GENERATION_AT)


def _subvolume_number(path: Path, *, at: int) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        argument = bytearray(504)
        ioctl(descriptor, _GET_SUBVOL_INFO, argument)
    finally:
        os.close(descriptor)
    (number,) = struct.unpack_from("Q", argument, at)
    assert isinstance(number, int)
    return number


def highest_inode(path: Path, *, known: int = _ROOT_DIRECTORY) -> int:
    """Return the highest inode number in the subvolume that the path is in.

    Numbers are given one after the other, from 257, and not again while it is mounted.
    The root directory has 256. So the number says how many inodes there are at most,
    without a walk. `known` is one that it had, which makes it cheap where none was
    added.

    Raises: OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    low, high = known, _MOST_INODES
    try:
        if not _has_inode(descriptor, least=known + 1):
            return known
        while low < high:
            middle = (low + high + 1) // 2
            if _has_inode(descriptor, least=middle):
                low = middle
            else:
                high = middle - 1
    finally:
        os.close(descriptor)
    return low


def _has_inode(descriptor: int, *, least: int) -> bool:
    limits = (0, least, _LAST_OBJECT, 0, _ANY, 0, _ANY)
    key = struct.pack(_KEY, *limits, _INODE_ITEM, _INODE_ITEM, 1, *[0] * 5)
    argument = bytearray(key.ljust(_ARGUMENT_BYTES, b"\0"))
    ioctl(descriptor, _TREE_SEARCH, argument)
    return bool(struct.unpack_from("I", argument, 64)[0])


def set_limit(path: Path, *, subvolume: int, size: int) -> None:
    """Let a subvolume write no more than `size` bytes; the kernel says EDQUOT.

    Metadata counts, too. Raises: OSError if the filesystem does not count.
    """
    argument = struct.pack("6Q", subvolume, _MAX_REFERENCED, size, 0, 0, 0)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ioctl(descriptor, _QGROUP_LIMIT, bytearray(argument))
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Counters:
    """The kernel's counters in memory: cheap to read, and ahead of the disk.

    Source: Documentation/ABI/testing/sysfs-fs-btrfs of Linux.
    """

    directory: Path

    def written(self, subvolume: int) -> int:
        """Return the bytes written by a subvolume, with those not on disk yet.

        Raises: OSError if there is no such subvolume.
        """
        for _ in range(_MOST_READS):
            referenced = self._read(subvolume, "referenced")
            pending = self._read(subvolume, "rsv_data")
            if self._read(subvolume, "referenced") == referenced:
                break  # else a commit may have counted what was pending
        return referenced + pending

    def limit(self, subvolume: int) -> int | None:
        """Return the limit that was set. Raises: as `written`."""
        if not self._read(subvolume, "limit_flags") & _MAX_REFERENCED:
            return None
        return self._read(subvolume, "max_referenced")

    def _read(self, subvolume: int, name: str) -> int:
        return int((self.directory / f"0_{subvolume}" / name).read_text())


def find_counters(path: Path) -> Counters | None:
    """Return the counters of the filesystem, or None if it does not count."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        argument = bytearray(1024)
        ioctl(descriptor, _FS_INFO, argument)
    finally:
        os.close(descriptor)
    name = uuid.UUID(bytes=bytes(argument[16:32]))
    directory = Path("/sys/fs/btrfs", str(name), "qgroups")
    return Counters(directory) if directory.is_dir() else None
