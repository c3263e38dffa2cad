"""System calls that Python 3.11 lacks. Standard library only."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 0x20, 0x1000, 0x4000, 0x80000

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _prctl(option: int, argument: int = 0) -> None:
    words = (ctypes.c_ulong(argument), *(ctypes.c_ulong(0) for _ in range(3)))
    _check(_libc.prctl(option, *words))


def unshare(flags: int) -> None:
    """Move to new namespaces. Source: unshare(2)."""
    _check(_libc.unshare(flags))


def mount(
    source: str, target: str, kind: str = "", flags: int = 0, data: str = ""
) -> None:
    """Mount, or change a mount. Source: mount(2)."""
    words = (os.fsencode(text) or None for text in (source, target, kind))
    _check(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data) or None))


def signal_at_parents_end(number: int) -> None:
    """Get a signal when the parent ends. Forks and changes of uid reset it."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Deny tracing to others of the same uid, until this process runs a program."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forgo_bounding_set() -> None:
    """Ensure that no program gives this process capabilities. Needs CAP_SETPCAP."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        _prctl(_PR_CAPBSET_DROP, capability)


def forgo_privileges() -> None:
    """Drop all capabilities permanently, and disable set-uid programs.

    Source: prctl(2) PR_SET_NO_NEW_PRIVS, capset(2).
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _check(
        _libc.prctl(
            *(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL),
            *(ctypes.c_ulong(0) for _ in range(3)),
        )
    )
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    _check(_libc.capset(header, ctypes.create_string_buffer(24)))
