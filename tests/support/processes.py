"""Looking at processes that tests start and lose."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

GONE_WITHIN_SECONDS = 60.0


def is_alive(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has reaped yet has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def pids_of(*words: str) -> list[int]:
    """Return the processes with exactly this command line, whatever they call it."""
    wanted = "".join(f"{word}\0" for word in words).encode()
    found = []
    for path in list(Path("/proc").glob("[0-9]*/cmdline")):
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                found.append(int(path.parent.name))
    return found


def is_any_left(group: int) -> bool:
    """Return whether a process of a group has not ended."""
    for path in list(Path("/proc").glob("[0-9]*/stat")):
        with contextlib.suppress(OSError):
            # Source: proc_pid_stat(5): state, ppid, pgrp.
            state, _, owner = path.read_text().rpartition(")")[2].split()[:3]
            if int(owner) == group and state not in "ZX":
                return True
    return False


def wait_until_ended(pid: int) -> None:
    ends = time.monotonic() + GONE_WITHIN_SECONDS
    while is_alive(pid):
        assert time.monotonic() < ends, f"{pid} did not end"
        time.sleep(0.02)
