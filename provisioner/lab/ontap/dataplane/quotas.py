"""btrfs simple quotas: the bytes that each subvolume has added to the filesystem.

An extent counts for the subvolume that wrote it, however many share it, so the bytes of
all subvolumes, including deleted ones, add up to what is used.

Source: linux/btrfs.h and btrfs_tree.h; needs Linux 6.7.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path

_QUOTA_CTL = 0xC0109428
_TREE_SEARCH = 0xD0009411
_GET_SUBVOL_INFO = 0x81F8943C
_ENABLE_SIMPLE = 4
_QUOTA_TREE, _QGROUP_INFO = 8, 242
_KEY, _HEADER, _ITEM = "7Q4I4Q", "3Q2I", "5Q"
_ARGUMENT_BYTES = 4096
# In what _GET_SUBVOL_INFO gives: after the id, the name and two more ids.
_GENERATION_AT = 8 + 256 + 8 + 8
_ANY = (1 << 64) - 1

_libc = ctypes.CDLL(None, use_errno=True)


def enable_quotas(path: Path) -> bool:
    """Enable counting by subvolume; return whether the filesystem supports it.

    Safe to repeat. Only what is written afterwards counts, so call it before the first
    file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        argument = bytearray(struct.pack("QQ", _ENABLE_SIMPLE, 0))
        fcntl.ioctl(descriptor, _QUOTA_CTL, argument)
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
        fcntl.ioctl(descriptor, _TREE_SEARCH, argument)
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
        fcntl.ioctl(descriptor, _GET_SUBVOL_INFO, argument)
    finally:
        os.close(descriptor)
    (number,) = struct.unpack_from("Q", argument, at)
    assert isinstance(number, int)
    return number
