"""A version 2 control group for each command, if we may create one.

Source: Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

CPU_PERIOD_MICROSECONDS = 100_000
EMPTY_WITHIN_SECONDS = 2.0
PREFIX = "cloneyard-"
# A younger one may be about to be joined.
LEFT_AFTER_SECONDS = 60.0


class Cgroup:
    """A group of our own; `bounds` names the controllers that limit it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bounds: list[str] = []

    def bound(self, controller: str, files: dict[str, str]) -> None:
        """Write limits; controllers that are not enabled here have no such files."""
        try:
            for name, text in files.items():
                (self.path / name).write_text(text)
        except OSError:
            return
        self.bounds.append(controller)

    def join(self) -> None:
        """Move the calling process in, and with it what it forks from now on."""
        (self.path / "cgroup.procs").write_text("0")

    @property
    def ran_out_of_memory(self) -> bool:
        try:
            lines = (self.path / "memory.events").read_text().splitlines()
        except OSError:
            return False
        return any(line.startswith("oom_kill ") and line[9:] != "0" for line in lines)

    def end(self) -> None:
        """Kill everything in it, however it hides, and remove the group."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        ends = time.monotonic() + EMPTY_WITHIN_SECONDS
        while time.monotonic() < ends:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)
            else:
                return


def make_cgroup(
    below: str, *, memory_bytes: int, processes: int, cpus: float
) -> Cgroup | None:
    """Create a group below the given one, or our own; None if not permitted."""
    try:
        parent = Path(below) if below else _own()
        if not (parent / "cgroup.procs").exists():
            return None
        for controller in ("memory", "pids", "cpu"):
            # Refused if processes are in the parent itself, as ours usually are.
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
        _remove_left(parent)
        path = parent / f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        path.mkdir()
    except OSError:
        return None
    group = Cgroup(path)
    if memory_bytes:
        group.bound(
            "memory", {"memory.max": str(memory_bytes), "memory.oom.group": "1"}
        )
    group.bound("pids", {"pids.max": str(processes)})
    if cpus:
        quota = int(cpus * CPU_PERIOD_MICROSECONDS)
        group.bound("cpu", {"cpu.max": f"{quota} {CPU_PERIOD_MICROSECONDS}"})
    return group


def _remove_left(parent: Path) -> None:
    """Remove groups of killed sandboxes; the kernel keeps those in use."""
    for path in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFT_AFTER_SECONDS:
                path.rmdir()


def _own() -> Path:
    """Return the directory of the group that we are in.

    Raises: FileNotFoundError (no version 2).
    """
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    ours = next((line[3:] for line in lines if line.startswith("0::")), None)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if ours is not None and fields[fields.index("-") + 1] == "cgroup2":
            return Path(fields[4]) / ours.lstrip("/")
    raise FileNotFoundError("There is no cgroup of version 2.")
