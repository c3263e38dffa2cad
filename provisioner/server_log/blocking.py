"""Who waited for whom, as far as a server's log tells.

The log says how long a command waited for a table's locks in all and how long it held
them, and not when. So a command that held a table while another waited for it is taken
for the one it waited for, and of several the one that held it longest meanwhile.

Readers share a table, and one that waits to write goes first: a long read, a short
write behind it, and all later reads behind that write. What a reader waited for is then
the long read, through the write.

Source: RIM's paper for the Perforce User Conference 2008, “long read, then write”; the
lines “total lock wait+held” as go-libp4dlog reads them.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

# What held a table for less than this share of a wait does not explain it.
EXPLAINS_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class TableUse:
    """A command's use of one table; times in milliseconds.

    `entity` is whose lock it is, where not the whole table has one, but each client.
    """

    command_id: int
    table: str
    user: str
    command: str
    began: dt.datetime
    ended: dt.datetime
    entity: str = ""
    read_wait_ms: int = 0
    read_held_ms: int = 0
    write_wait_ms: int = 0
    write_held_ms: int = 0

    @property
    def wait_ms(self) -> int:
        return self.read_wait_ms + self.write_wait_ms

    @property
    def held_ms(self) -> int:
        return self.read_held_ms + self.write_held_ms


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """A command that waited, and for whom; `by` is None if the log does not say.

    `through` is the write that `waiter` was behind, where `by` is a read before it.
    """

    waiter: TableUse
    by: TableUse | None
    through: TableUse | None = None


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """A command, and what waited for it, longest first."""

    use: TableUse
    blocked: tuple[Blocked, ...]

    @property
    def wait_ms(self) -> int:
        return sum(each.waiter.wait_ms for each in self.blocked)

    @property
    def users(self) -> list[str]:
        return sorted({each.waiter.user for each in self.blocked})

    @property
    def longest(self) -> TableUse:
        return self.blocked[0].waiter

    @property
    def is_behind_writes(self) -> bool:
        """Whether readers waited for this read, behind a write."""
        return any(each.through is not None for each in self.blocked)


def blocked_of(waiters: Iterable[TableUse], uses: Iterable[TableUse]) -> list[Blocked]:
    """Return for whom each of the waiters waited, longest wait first.

    `uses` are those of the same tables by all commands, the waiters' among them.
    """
    by_lock = defaultdict[tuple[str, str], list[TableUse]](list)
    for use in uses:
        by_lock[use.table, use.entity].append(use)
    locks = {key: _Lock(them) for key, them in by_lock.items()}
    longest_first = sorted(waiters, key=lambda each: (-each.wait_ms, each.command_id))
    return [
        locks[waiter.table, waiter.entity].blocked(waiter) for waiter in longest_first
    ]


def culprits_of(blocked: Iterable[Blocked]) -> list[Culprit]:
    """Return those who were waited for, the longest waits together first."""
    by_use = defaultdict[TableUse, list[Blocked]](list)
    for each in blocked:
        if each.by is not None:
            by_use[each.by].append(each)
    culprits = [Culprit(use=use, blocked=tuple(them)) for use, them in by_use.items()]
    return sorted(culprits, key=lambda each: (-each.wait_ms, each.use.command_id))


class _Lock:
    """The uses of one lock. Thousands are compared with hundreds of waiters."""

    def __init__(self, uses: Sequence[TableUse]) -> None:
        self._held = _Spans(uses, lambda use: use.held_ms)
        self._written = _Spans(uses, lambda use: use.write_held_ms)
        self._uses = uses

    def blocked(self, waiter: TableUse) -> Blocked:
        direct = self._holder(waiter)
        if direct is not None or _is_to_write(waiter):
            return Blocked(waiter=waiter, by=direct)
        began, ended = waiter.began.timestamp(), waiter.ended.timestamp()
        for from_, to, writer, reader in self._behind_others:
            is_meanwhile = to > began and from_ < ended
            if is_meanwhile and reader.command_id != waiter.command_id:
                return Blocked(waiter=waiter, by=reader, through=writer)
        return Blocked(waiter=waiter, by=None)

    @cached_property
    def _behind_others(self) -> list[tuple[float, float, TableUse, TableUse]]:
        """When writes ran that waited, the longest wait first, and for whom each."""
        writers = [use for use in self._uses if use.write_wait_ms]
        return [
            (writer.began.timestamp(), writer.ended.timestamp(), writer, reader)
            for writer in sorted(writers, key=lambda each: -each.write_wait_ms)
            if (reader := self._holder(writer)) is not None
        ]

    def _holder(self, waiter: TableUse) -> TableUse | None:
        """Return who held it longest while somebody waited, None if nobody did."""
        return (self._held if _is_to_write(waiter) else self._written).longest(waiter)


class _Spans:
    """When commands ran that held a lock, and for how long, in the order they began."""

    def __init__(
        self, uses: Iterable[TableUse], held: Callable[[TableUse], int]
    ) -> None:
        self._spans = sorted(
            (
                (use.began.timestamp(), use.ended.timestamp(), held(use), use)
                for use in uses
                if held(use)
            ),
            key=lambda span: span[:2],
        )
        self._begins = [span[0] for span in self._spans]
        self._longest = max((to - from_ for from_, to, *_ in self._spans), default=0.0)

    def longest(self, waiter: TableUse) -> TableUse | None:
        """Return who held the lock longest while somebody waited."""
        began, ended = waiter.began.timestamp(), waiter.ended.timestamp()
        least, longest, found = EXPLAINS_SHARE * waiter.wait_ms, 0.0, None
        # Whoever ran meanwhile began within these.
        first = bisect_left(self._begins, began - self._longest)
        last = bisect_left(self._begins, ended)
        for from_, to, held, use in self._spans[first:last]:
            if held < least or held <= longest or to <= began:
                continue
            meanwhile = min(held, 1000 * (min(to, ended) - max(from_, began)))
            if (
                meanwhile >= least
                and meanwhile > longest
                and use.command_id != waiter.command_id
            ):
                longest, found = meanwhile, use
        return found


def _is_to_write(waiter: TableUse) -> bool:
    return waiter.write_wait_ms >= waiter.read_wait_ms
