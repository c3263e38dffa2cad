"""Locks on tables and clients, shared by every process that serves a root.

They are files below `<root>/server.locks`, so a killed process leaves none behind.
Waits are real and are counted, for `-Ztrack` and for the log.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from provisioner.lab.perforce import faults
from provisioner.lab.perforce.messages import CommandError

# A real server is woken when a lock is let go. Here somebody looks: as soon as the wait
# is longer by a quarter, so that no wait is told as much longer than it had to be.
_SOONEST_SECONDS, _LATEST_SECONDS = 0.0001, 0.005
_LONGER_BY = 0.25
# No wait of the lab is without an end; a real server has no such limit by default.
LONGEST_SECONDS = 120.0


@dataclass
class Use:
    """A command's use of one table; times in seconds, (read, write)."""

    locks: list[int] = field(default_factory=lambda: [0, 0])
    rows: list[int] = field(default_factory=lambda: [0, 0])
    waited: list[float] = field(default_factory=lambda: [0.0, 0.0])
    held: list[float] = field(default_factory=lambda: [0.0, 0.0])
    longest_wait: list[float] = field(default_factory=lambda: [0.0, 0.0])
    longest_held: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def waits(self, mode: int, seconds: float) -> None:
        self.locks[mode] += 1
        self.waited[mode] += seconds
        self.longest_wait[mode] = max(self.longest_wait[mode], seconds)

    def holds(self, mode: int, seconds: float) -> None:
        self.held[mode] += seconds
        self.longest_held[mode] = max(self.longest_held[mode], seconds)

    def join(self, other: Use) -> None:
        """Add what another use counted."""
        for mode in (_READ, _WRITE):
            self.locks[mode] += other.locks[mode]
            self.rows[mode] += other.rows[mode]
            self.waited[mode] += other.waited[mode]
            self.held[mode] += other.held[mode]
            self.longest_wait[mode] = max(
                self.longest_wait[mode], other.longest_wait[mode]
            )
            self.longest_held[mode] = max(
                self.longest_held[mode], other.longest_held[mode]
            )


_READ, _WRITE = 0, 1


def _file_name(table: str) -> str:
    """Return the name of a lock file, which is short even for a long client name."""
    name = quote(table, safe="")
    if len(name) < 200:
        return name
    return hashlib.sha256(name.encode()).hexdigest()


class TableLocks:
    """The locks of one command. Tables are locked in a fixed order, to avoid deadlocks.

    `limit_seconds` is the user's MaxLockTime: it starts with the first lock and
    includes waiting.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._directory = root / "server.locks"
        self.limit_seconds: float | None = None
        # Called before each try to get a lock; what it raises ends the wait.
        self.while_waiting: Callable[[], None] | None = None
        self._started: float | None = None
        self.uses: dict[str, Use] = {}

    @contextlib.contextmanager
    def apart(self) -> Iterator[dict[str, Use]]:
        """Count the uses within a with block by themselves; they join the others."""
        before, self.uses = self.uses, {}
        try:
            yield self.uses
        finally:
            within, self.uses = self.uses, before
            for table, use in within.items():
                self.uses.setdefault(table, Use()).join(use)

    @contextlib.contextmanager
    def reading(self, tables: Mapping[str, int]) -> Iterator[None]:
        """Hold shared locks; the numbers are rows.

        Raises: CommandError if it took too long.
        """
        yield from self._hold(tables, _READ)

    @contextlib.contextmanager
    def writing(self, tables: Mapping[str, int]) -> Iterator[None]:
        """Hold exclusive locks; the numbers are rows.

        Raises: CommandError if it took too long.
        """
        yield from self._hold(tables, _WRITE)

    def _hold(self, tables: Mapping[str, int], mode: int) -> Iterator[None]:
        self._started = self._started or time.monotonic()
        taken: list[tuple[Use, int, float]] = []
        try:
            for table in sorted(tables):
                use = self.uses.setdefault(table, Use())
                use.rows[mode] += tables[table]
                descriptor = self._take(table, mode, use)
                taken.append((use, descriptor, time.monotonic()))
            yield
        finally:
            for use, descriptor, since in reversed(taken):
                os.close(descriptor)
                use.holds(mode, time.monotonic() - since)

    def _take(self, table: str, mode: int, use: Use) -> int:
        """Return the open lock file; closing it releases the lock."""
        self._directory.mkdir(exist_ok=True)
        path = self._directory / _file_name(table)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        began = time.monotonic()
        wanted = fcntl.LOCK_EX if mode == _WRITE else fcntl.LOCK_SH
        try:
            while True:
                # Before each try: who was told to stop takes no lock any more.
                self._check_time()
                if not faults.is_lock_held(self._root, table=table):
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(descriptor, wanted | fcntl.LOCK_NB)
                        break
                longer = _LONGER_BY * (time.monotonic() - began)
                time.sleep(min(max(longer, _SOONEST_SECONDS), _LATEST_SECONDS))
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            use.waits(mode, time.monotonic() - began)
        return descriptor

    def held_by_others(self) -> dict[str, bool]:
        """Return the names of all locks that are held; True for an exclusive one."""
        found = dict.fromkeys(faults.held_locks(self._root), True)
        for path in self._directory.glob("*"):
            with path.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    found[unquote(path.name)] = True
                    continue
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    found.setdefault(unquote(path.name), False)
        return found

    def _check_time(self) -> None:
        assert self._started is not None
        if self.while_waiting is not None:
            self.while_waiting()
        limit = LONGEST_SECONDS if self.limit_seconds is None else self.limit_seconds
        if time.monotonic() - self._started > limit:
            raise CommandError(6597, maxLockTime=f"{limit:g}")
