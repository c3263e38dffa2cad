"""The SVM's namespace: volumes joined into one tree by their junction paths.

Root joins with bind mounts, anybody else with symlinks. Either way a junction appears
inside its parent volume, so one tree below the mount root shows what NFS clients see.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

JunctionMethod = Literal["bind", "symlink"]

_MS_BIND, _MS_PRIVATE = 4096, 1 << 18
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_NOTHING: Mapping[Path, Path] = MappingProxyType({})
_OCTAL = re.compile(r"\\([0-7]{3})")

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace(Protocol):
    """Join volumes into the tree, by mounts or symlinks."""

    method: JunctionMethod

    def join(self, source: Path, *, at: Path, read_only: bool = False) -> None:
        """Make `source` appear at `at`, whose parent exists; safe to repeat.

        Symlinks do not prevent writes.

        Raises: FileExistsError if something else is there; OSError.
        """

    def part(self, at: Path) -> None:
        """Undo `join`; processes inside keep what they have open."""

    def part_all(self, below: Path, *, but: Mapping[Path, Path] = _NOTHING) -> None:
        """Undo every junction below the directory, including those of a killed lab.

        `but` are the ones to keep, {path: source}: processes inside them notice
        nothing.
        """


class BindNamespace:
    """Junctions are bind mounts, private to this mount namespace."""

    method: JunctionMethod = "bind"

    def join(self, source: Path, *, at: Path, read_only: bool = False) -> None:
        """Bind `source` on an empty directory, creating it if necessary."""
        if _is_same(at, source):
            return
        try:
            at.mkdir(mode=0o755)
        except FileExistsError:
            if at.is_symlink() or not at.is_dir() or any(at.iterdir()):
                raise
        _mount(source, at, read_only=read_only)

    def part(self, at: Path) -> None:
        """Unmount lazily, as an array does, and remove the directory."""
        _unmount(at)
        try:
            at.rmdir()
        except OSError as error:
            # What is joined read-only is a place in another directory of ours.
            if error.errno not in (errno.ENOENT, errno.EROFS):
                raise

    def part_all(self, below: Path, *, but: Mapping[Path, Path] = _NOTHING) -> None:
        """Unmount what is mounted below the directory, innermost first."""
        for path in reversed(mounts_below(below)):
            source = but.get(path)
            if source is None or not _is_same(path, source):
                _unmount(path)


class SymlinkNamespace:
    """Junctions are symlinks, for users who may not mount."""

    method: JunctionMethod = "symlink"

    def join(self, source: Path, *, at: Path, read_only: bool = False) -> None:
        """Link to `source` from `at`, replacing an empty directory."""
        if at.is_symlink() and at.readlink() == source:
            return
        if at.is_dir() and not at.is_symlink() and not any(at.iterdir()):
            at.rmdir()
        at.symlink_to(source)

    def part(self, at: Path) -> None:
        """Remove the symlink."""
        with contextlib.suppress(FileNotFoundError):
            if at.is_symlink():
                at.unlink()

    def part_all(self, below: Path, *, but: Mapping[Path, Path] = _NOTHING) -> None:
        """Leave symlinks alone: they hold nothing open and are checked at the start."""


def choose_namespace(trial_root: Path) -> Namespace:
    """Return bind mounts if they work below the directory, else symlinks."""
    if os.geteuid() != 0:
        return SymlinkNamespace()
    source, target = trial_root / ".trial-source", trial_root / ".trial-target"
    for path in (source, target):
        path.mkdir(exist_ok=True)
    try:
        _mount(source, target)
        _unmount(target)
    except OSError:
        return SymlinkNamespace()
    finally:
        for path in (source, target):
            path.rmdir()
    return BindNamespace()


def mounts_below(directory: Path) -> list[Path]:
    """Return the mount points below a directory, in the order they were made."""
    prefix = f"{os.path.realpath(directory)}/"
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            point = _OCTAL.sub(lambda m: chr(int(m[1], 8)), line.split(" ")[4])
            if point.startswith(prefix):
                found.append(Path(point))
    return found


def _is_same(at: Path, source: Path) -> bool:
    return at.exists() and source.exists() and os.path.samefile(at, source)


def _mount(source: Path, target: Path, *, read_only: bool = False) -> None:
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None),
        target,
    )
    # What is mounted inside later must not show up in the volume's own directory.
    _check(_libc.mount(None, os.fsencode(target), None, _MS_PRIVATE, None), target)
    # As hosts mount it; a bind mount takes these only by a second call.
    flags = _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV
    if read_only:
        flags |= _MS_RDONLY
    _check(_libc.mount(None, os.fsencode(target), None, flags, None), target)


def _unmount(target: Path) -> None:
    flags = _MNT_DETACH | _UMOUNT_NOFOLLOW
    while _libc.umount2(os.fsencode(target), flags) == 0:
        pass
    if ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        _check(-1, target)


def _check(result: int, path: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
