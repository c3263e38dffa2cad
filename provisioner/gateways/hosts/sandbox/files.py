"""The host's files that a command sees: all but private ones and those of others.

It runs in a mount namespace of its own, as the owner of that namespace.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from provisioner.gateways.hosts.sandbox import kernel
from provisioner.gateways.hosts.sandbox.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    MS_SLAVE,
)

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - ours is mounted over them
_COVER_BYTES = 1 << 20


def arrange_files(
    *, hidden: list[str], shown: list[tuple[str, str]], tmp_bytes: int
) -> None:
    """Make temporary directories private and hide paths, except those in `shown`.

    `shown` are pairs: where something is seen, and what.

    Raises: OSError.
    """
    with contextlib.ExitStack() as opened:
        sources = [(Path(at), _open(what, opened)) for at, what in shown]
        # One for all: otherwise each could use this much memory.
        first, *others = filter(os.path.isdir, PRIVATE)
        _mount_tmpfs(first, mode="1777", size=tmp_bytes)
        for path in others:
            kernel.mount(first, path, flags=MS_BIND)
        covers = _cover(hidden)
        for at, source in sources:
            _show(at, source)
        for path in covers:
            flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV
            kernel.mount("", path, flags=flags)


def leave_mounts() -> None:
    """Enter a mount namespace that nobody else sees.

    Raises: OSError (for example because AppArmor forbids mounts).
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", flags=MS_SLAVE | MS_REC)


def mount_proc() -> None:
    """Mount a /proc for the processes of our namespace."""
    kernel.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _open(path: str, opened: contextlib.ExitStack) -> int:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    opened.callback(os.close, descriptor)
    return descriptor


def _mount_tmpfs(path: str, *, mode: str, size: int) -> None:
    kernel.mount(
        *("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV), f"mode={mode},size={size}"
    )


def _cover(paths: list[str]) -> list[str]:
    """Cover files and directories; return the directories. Parents come first."""
    covered = []
    for path in sorted(map(os.path.realpath, paths)):
        if os.path.isdir(path):
            _mount_tmpfs(path, mode="755", size=_COVER_BYTES)
            covered.append(path)
        elif os.path.exists(path):
            kernel.mount("/dev/null", path, flags=MS_BIND)
    return covered


def _show(at: Path, source: int) -> None:
    """Show the source at a path, unless nothing covers it there."""
    with contextlib.suppress(OSError):
        if os.path.samestat(at.stat(), os.fstat(source)):
            return
    if os.path.isdir(f"/proc/self/fd/{source}"):
        at.mkdir(mode=0o755, parents=True, exist_ok=True)
    else:
        at.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        at.touch()
    kernel.mount(f"/proc/self/fd/{source}", str(at), flags=MS_BIND | MS_REC)
