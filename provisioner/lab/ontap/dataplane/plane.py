"""The data plane: the same operations on btrfs, with reflinks, and as plain copies."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from typing import Literal, Protocol

from provisioner.lab.ontap.dataplane import btrfs
from provisioner.lab.ontap.dataplane.trees import (
    FileCopier,
    copy_bytes,
    copy_tree,
    reflink,
    remove_tree,
    send_bytes,
)

CopyMethod = Literal["btrfs", "reflink", "copy"]


class DataPlane(Protocol):
    """Create and remove trees. Each operation is O(1) if the filesystem allows it."""

    method: CopyMethod

    def create(self, path: Path) -> None:
        """Create an empty tree."""

    def copy(self, source: Path, *, target: Path, read_only: bool) -> None:
        """Make `target` an independent image of `source`."""

    def remove(self, path: Path) -> None:
        """Remove a tree with its contents; safe to repeat."""


class SubvolumePlane:
    """Every tree is a btrfs subvolume."""

    method: CopyMethod = "btrfs"

    def create(self, path: Path) -> None:
        """Create an empty subvolume."""
        btrfs.create_subvolume(path)

    def copy(self, source: Path, *, target: Path, read_only: bool) -> None:
        """Snapshot the subvolume."""
        btrfs.snapshot_subvolume(source, target=target, read_only=read_only)

    def remove(self, path: Path) -> None:
        """Destroy the subvolume, or whatever else is in its place."""
        if not path.exists():
            return
        if btrfs.is_subvolume(path):
            try:
                btrfs.destroy_subvolume(path)
            except OSError:
                # Somebody made a subvolume inside it, or only root may destroy here.
                _remove_nested(path)
            else:
                return
        remove_tree(path)


def _remove_nested(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        btrfs.set_writable(path)
    for directory, names, _files in os.walk(path):
        for name in list(names):
            inner = Path(directory, name)
            if not inner.is_symlink() and btrfs.is_subvolume(inner):
                names.remove(name)
                _remove_nested(inner)
                remove_tree(inner)


class DirectoryPlane:
    """Every tree is a directory, copied file by file."""

    def __init__(self, copy_file: FileCopier) -> None:
        """Copy each file with `copy_file`, which shares blocks or copies bytes."""
        self.method: CopyMethod = "reflink" if copy_file is reflink else "copy"
        self._copy_file = copy_file

    def create(self, path: Path) -> None:
        """Create an empty directory."""
        path.mkdir()

    def copy(self, source: Path, *, target: Path, read_only: bool) -> None:
        """Copy the directory; `read_only` holds because nobody can reach the copy."""
        copy_tree(source, target=target, copy_file=self._copy_file)

    def remove(self, path: Path) -> None:
        """Remove the directory."""
        remove_tree(path)


def carry(plane: DataPlane, source: Path, *, target: Path) -> None:
    """Make `target` a read-only image of a tree that may be on another filesystem."""
    plane.remove(target)
    try:
        plane.copy(source, target=target, read_only=True)
        return
    except OSError as error:
        if error.errno not in _ELSEWHERE:
            raise
    plane.remove(target)
    plane.create(target)
    copy_tree(source, target=target, copy_file=send_bytes)
    if plane.method == "btrfs":
        btrfs.set_read_only(target)


# What the kernel says when blocks cannot be shared with the other tree.
_ELSEWHERE = (errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EOPNOTSUPP)


def choose_plane(root: Path) -> DataPlane:
    """Return the best plane that the filesystem of `root` supports."""
    trial = Path(tempfile.mkdtemp(prefix=".trial-", dir=root))
    try:
        if _can_snapshot(trial):
            return SubvolumePlane()
        return DirectoryPlane(reflink if _can_reflink(trial) else copy_bytes)
    finally:
        remove_tree(trial)


def _can_snapshot(trial: Path) -> bool:
    volume, image = trial / "volume", trial / "image"
    try:
        btrfs.create_subvolume(volume)
        btrfs.snapshot_subvolume(volume, target=image, read_only=True)
        btrfs.destroy_subvolume(image)
        btrfs.destroy_subvolume(volume)
    except OSError:
        return False
    return True


def _can_reflink(trial: Path) -> bool:
    source, target = trial / "source", trial / "target"
    source.write_bytes(b"x" * 4096)
    with source.open("rb") as reading, target.open("wb") as writing:
        try:
            reflink(reading.fileno(), writing.fileno(), 4096)
        except OSError:
            return False
    return True
