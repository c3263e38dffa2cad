"""btrfs subvolumes through the kernel's ioctls: create, snapshot and destroy in O(1).

Source: linux/btrfs.h; btrfs-subvolume(8).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from provisioner.lab.ontap.dataplane.kernel import ioctl

_SUBVOL_CREATE = 0x5000940E
_SNAP_CREATE_V2 = 0x50009417
_SNAP_DESTROY = 0x5000940F
_SUBVOL_SETFLAGS = 0x4008941A
_READ_ONLY = 1 << 1
_NAME_LIMIT = 4087


def create_subvolume(path: Path) -> None:
    """Create an empty subvolume."""
    argument = struct.pack(f"q{_NAME_LIMIT + 1}s", 0, os.fsencode(path.name))
    _ioctl(path.parent, _SUBVOL_CREATE, argument)


def snapshot_subvolume(source: Path, *, target: Path, read_only: bool) -> None:
    """Make `target` a writable or read-only snapshot of the subvolume `source`."""
    descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        argument = struct.pack(
            "qQQ32x4040s",
            descriptor,
            0,
            _READ_ONLY if read_only else 0,
            os.fsencode(target.name),
        )
        _ioctl(target.parent, _SNAP_CREATE_V2, argument)
    finally:
        os.close(descriptor)


def set_read_only(path: Path) -> None:
    """Make the subvolume read-only."""
    _ioctl(path, _SUBVOL_SETFLAGS, struct.pack("Q", _READ_ONLY))


def set_writable(path: Path) -> None:
    """Make a read-only subvolume writable again."""
    _ioctl(path, _SUBVOL_SETFLAGS, struct.pack("Q", 0))


def destroy_subvolume(path: Path) -> None:
    """Remove a subvolume with its contents; the space is freed in the background."""
    argument = struct.pack(f"q{_NAME_LIMIT + 1}s", 0, os.fsencode(path.name))
    _ioctl(path.parent, _SNAP_DESTROY, argument)


def is_subvolume(path: Path) -> bool:
    """Return whether the directory is the root of a subvolume (inode 256)."""
    return os.lstat(path).st_ino == 256


def _ioctl(directory: Path, request: int, argument: bytes) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ioctl(descriptor, request, bytearray(argument))
    finally:
        os.close(descriptor)
