"""Files with equal content: found by size and digest, and shared where that can be.

Source: ioctl_fideduperange(2); the kernel compares the bytes itself before it shares.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_FIDEDUPERANGE = 0xC0189436
_RANGE_BYTES = 16 << 20
_CHUNK = 1 << 20
_SMALLEST_BYTES = 1

GoOn = Callable[[float], bool]


@dataclass(frozen=True)
class Scan:
    """What a scan found: all bytes of files, and those that a copy has elsewhere."""

    scanned_bytes: int = 0
    duplicate_bytes: int = 0
    shared_bytes: int = 0


class Stopped(Exception):
    """The scan was told not to go on."""


def scan(root: Path, *, share: bool, go_on: GoOn) -> Scan:
    """Find the files of a tree whose content another file of it has.

    share: let the filesystem keep the content once. `go_on` is asked now and then,
    with the share of the work that is done. Raises: Stopped when it says no.
    """
    by_size: defaultdict[int, list[str]] = defaultdict(list)
    total = 0
    for path, size in _files(root):
        by_size[size].append(path)
        total += size
        if len(by_size[size]) % 1000 == 0 and not go_on(0.0):
            raise Stopped
    candidates = {size: paths for size, paths in by_size.items() if len(paths) > 1}
    work = sum(size * len(paths) for size, paths in candidates.items())
    done = duplicate = shared = 0
    for size, paths in candidates.items():
        originals: dict[bytes, str] = {}
        for path in paths:
            if not go_on(done / work):
                raise Stopped
            done += size
            try:
                original = originals.setdefault(_digest(path), path)
                if original != path:
                    duplicate += size
                    shared += _share(original, path, size) if share else 0
            except OSError:
                continue  # somebody is working in it
    return Scan(total, duplicate, shared)


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the regular files with their sizes, hard links once."""
    seen: set[int] = set()
    pending = [str(root)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(entry.path)
                    elif (
                        stat.S_ISREG(status.st_mode)
                        and status.st_size >= _SMALLEST_BYTES
                        and status.st_ino not in seen
                    ):
                        if status.st_nlink > 1:
                            seen.add(status.st_ino)
                        yield entry.path, status.st_size
        except FileNotFoundError:
            continue


def _digest(path: str) -> bytes:
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(_CHUNK):
            digest.update(data)
    return digest.digest()


def _share(original: str, copy: str, size: int) -> int:
    """Let two files share their blocks; return how many bytes do now."""
    source = os.open(original, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        target = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            offset = 0
            while offset < size:
                length = min(_RANGE_BYTES, size - offset)
                request = bytearray(
                    struct.pack("QQHHI", offset, length, 1, 0, 0)
                    + struct.pack("qQQiI", target, offset, 0, 0, 0)
                )
                fcntl.ioctl(source, _FIDEDUPERANGE, request)
                _fd, _offset, deduped, status, _ = struct.unpack_from(
                    "qQQiI", request, 24
                )
                if status != 0 or deduped == 0:
                    break
                offset += deduped
            return offset
        finally:
            os.close(target)
    finally:
        os.close(source)
