"""Make this host forget what it has read of some files.

Source: posix_fadvise(2): POSIX_FADV_DONTNEED drops the pages that are written already,
and needs no rights beyond reading the file. An NFS client drops them likewise. What the
storage, or a process in its own memory, still knows is not forgotten.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from provisioner.gateways.snapshot_directories import SNAPSHOTS

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def forget(roots: Iterable[Path]) -> int:
    """Drop the pages of all files below some directories; return how many files.

    Links are not followed. A file that is gone meanwhile is left out.
    """
    forgotten = 0
    for root in roots:
        for _, directories, names, above in os.fwalk(root, follow_symlinks=False):
            directories[:] = [each for each in directories if each != SNAPSHOTS]
            for name in names:
                with contextlib.suppress(OSError):
                    forgotten += _forget(name, above)
    return forgotten


def _forget(name: str, above: int) -> bool:
    descriptor = os.open(name, _READ, dir_fd=above)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return True
