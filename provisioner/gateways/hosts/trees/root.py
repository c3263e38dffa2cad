"""The directory that a walk begins with: opened once, and looked at from there."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from provisioner.gateways.hosts.mounts import is_whole_filesystem, mounts_below

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class Root:
    """`is_whole` says that the tree is all there is of its filesystem.

    `mounts_inside` are relative to it. `mount_id` tells the root's mount from those;
    None where there are none.
    """

    fd: int
    is_whole: bool
    mounts_inside: list[str]
    mount_id: int | None


def open_root(path: str) -> Root:
    """Open the root, which the caller has checked, and check what was opened.

    Raises: OSError.
    """
    fd = os.open(path, OPEN_DIRECTORY)
    try:
        if os.path.samestat(os.fstat(fd), os.stat("/")):
            raise OSError(errno.EPERM, "the root of the host")
        opened = f"/proc/self/fd/{fd}"
        mounts_inside = mounts_below(opened)
        return Root(
            fd=fd,
            is_whole=is_whole_filesystem(opened),
            mounts_inside=mounts_inside,
            mount_id=mount_id_of(fd) if mounts_inside else None,
        )
    except BaseException:
        os.close(fd)
        raise


def mount_id_of(fd: int) -> int:
    """Return which mount a descriptor was opened in; a bind mount is one of its own.

    Source: mnt_id in proc_pid_fdinfo(5).
    """
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line[:7] == "mnt_id:")
