"""Extents of files on disk, and how much two trees share.

This shows what a clone shares on filesystems that share blocks without counting them.

Source: linux/fiemap.h; Documentation/filesystems/fiemap.rst.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.lab.ontap.dataplane.kernel import ioctl

_FIEMAP = 0xC020660B
_HEADER, _EXTENT = "QQIIII", "QQQQQIIII"
_AT_ONCE = 256
_LAST = 1
# Unknown place, not written yet, encoded or kept in the metadata: nothing to compare.
_NOWHERE = 0x2 | 0x4 | 0x8 | 0x80 | 0x200
_END = (1 << 64) - 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Ranges:
    """Ordered ranges of the disk that do not overlap."""

    starts: array[int]
    ends: array[int]

    def overlap(self, start: int, end: int) -> int:
        """Return how many bytes from `start` to `end` are in the ranges."""
        found = 0
        index = max(0, bisect_right(self.starts, start) - 1)
        while index < len(self.starts) and self.starts[index] < end:
            inside = min(end, self.ends[index]) - max(start, self.starts[index])
            found += max(0, inside)
            index += 1
        return found


def ranges_of(root: Path, *, stopped: threading.Event) -> Ranges:
    """Return where the files of a tree are on disk, after writing out pending data."""
    _write_out(root)
    starts, ends = array("Q"), array("Q")
    for start, end in sorted(_places(root, stopped=stopped)):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return Ranges(starts, ends)


def shared_bytes(root: Path, base: Ranges, *, stopped: threading.Event) -> int:
    """Return how many bytes a tree shares with `base`."""
    _write_out(root)
    return sum(base.overlap(*place) for place in _places(root, stopped=stopped))


def _write_out(root: Path) -> None:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _libc.syncfs(descriptor)
    finally:
        os.close(descriptor)


def _places(root: Path, *, stopped: threading.Event) -> Iterator[tuple[int, int]]:
    """Yield start and end of every extent of the tree's files, hard links once."""
    seen: set[int] = set()
    pending = [str(root)]
    while pending and not stopped.is_set():
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)
                elif stat.S_ISREG(status.st_mode) and status.st_blocks:
                    if status.st_nlink > 1 and status.st_ino in seen:
                        continue
                    seen.add(status.st_ino)
                    yield from _pieces(entry.path)


def _pieces(path: str) -> Iterator[tuple[int, int]]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return  # somebody is working in it
    with os.fdopen(descriptor):
        position = 0
        while True:
            size = struct.calcsize(_HEADER)
            request = bytearray(size + _AT_ONCE * struct.calcsize(_EXTENT))
            ask = (position, _END - position, 0, 0, _AT_ONCE, 0)
            struct.pack_into(_HEADER, request, 0, *ask)
            ioctl(descriptor, _FIEMAP, request)
            (count,) = struct.unpack_from("I", request, 20)
            flags = _LAST
            for index in range(count):
                logical, physical, length, _, _, flags, *_ = struct.unpack_from(
                    _EXTENT, request, size + index * struct.calcsize(_EXTENT)
                )
                position = logical + length
                if not flags & _NOWHERE:
                    yield physical, physical + length
            if flags & _LAST:
                return
