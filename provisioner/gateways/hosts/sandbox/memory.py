"""Bound the memory of a command without a cgroup, by checking it every second.

Growth within a second is noticed too late, so a cgroup is better.

Source: /proc/pid/statm and /proc/pid/smaps_rollup in proc(5).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

WATCHED_EVERY_SECONDS = 1.0

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def takes_more(limit_bytes: int, pids: Iterable[int]) -> bool:
    """Return whether processes together use more memory than the limit.

    Memory that they share since a fork counts once.
    """
    seen = {pid: _own_bytes(pid) for pid in pids}
    if sum(seen.values()) <= limit_bytes:
        return False
    # Asking for this walks all their pages: only where it decides.
    return sum(_share_bytes(pid, most=most) for pid, most in seen.items()) > limit_bytes


def _own_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        _, resident, of_files, *_ = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(resident) - int(of_files)) * _PAGE_BYTES
    return 0


def _share_bytes(pid: int, *, most: int) -> int:
    """Return the private memory of a process, and its part of shared memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return most
