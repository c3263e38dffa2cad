"""What a file system lacks: writing fails alike without bytes and without inodes."""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from pathlib import Path

NO_SPACE = os.strerror(errno.ENOSPC)
"""What programs print for both."""

_LITTLE = 0.1


class Lack(StrEnum):
    """What there is too little of."""

    BYTES = "bytes"
    INODES = "inodes"


def lack_at(path: Path) -> Lack | None:
    """Return which of both is used up, for the most part, where the path lies.

    What failed may have removed some of its files by now. A file system that does not
    count inodes says that there are none. Source: statvfs(3).
    """
    status = os.statvfs(path)
    inodes_left = status.f_favail / status.f_files if status.f_files else 1.0
    bytes_left = status.f_bavail / max(1, status.f_blocks)
    if min(inodes_left, bytes_left) > _LITTLE:
        return None
    return Lack.INODES if inodes_left < bytes_left else Lack.BYTES
