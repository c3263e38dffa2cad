"""Find which resource is used up: without bytes or inodes, writing fails alike."""

from __future__ import annotations

import errno
import mmap
import os
from enum import StrEnum
from pathlib import Path

NO_SPACE = os.strerror(errno.ENOSPC)
"""What programs print in both cases."""

OVER_QUOTA = os.strerror(errno.EDQUOT)
"""What they print where a quota of ONTAP is used up.

A file system between them and ONTAP may say it of a full volume, too.
"""

LITTLE = 0.1
"""The share that is left when a program failed, which may have removed its files."""


class Lack(StrEnum):
    """The resource that is used up."""

    BYTES = "bytes"
    INODES = "inodes"
    QUOTA = "quota"
    AGGREGATE = "aggregate"


def lack_at(path: Path) -> Lack | None:
    """Return which resource is most likely used up on the filesystem of the path.

    The program that failed may already have removed some of its files. A file system
    that does not count inodes reports zero of them. Source: statvfs(3).
    """
    status = os.statvfs(path)
    return lack_of(
        bytes_left=status.f_bavail / max(1, status.f_blocks),
        inodes_left=status.f_favail / status.f_files if status.f_files else 1.0,
    )


def lack_of(
    *, bytes_left: float, inodes_left: float, little: float = LITTLE
) -> Lack | None:
    """Return of which resource no more than a little is left, by the shares of it."""
    if min(inodes_left, bytes_left) > little:
        return None
    return Lack.INODES if inodes_left < bytes_left else Lack.BYTES


def log_says(log: Path, text: str) -> bool:
    """Return whether a command's log has a text anywhere, such as NO_SPACE."""
    with log.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as printed:
            return printed.find(text.encode()) >= 0
