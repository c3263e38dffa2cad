"""Which checkpoints have been kept long enough, from values alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A checkpoint that is there: as of when it is, and whether it is proven."""

    number: int
    taken_at: dt.datetime
    is_proven: bool


def to_remove(kept: Iterable[Kept], *, keep_daily: int, keep_weekly: int) -> list[int]:
    """Return the numbers of those that no rule keeps, the oldest first.

    Of each of the last days (UTC) and weeks that have a proven one, the newest is kept.
    Days without one do not count, so a pause removes nothing, and the newest proven one
    always stays. One that is not proven stays until there is a newer one.
    """
    newest_first = sorted(kept, key=lambda each: each.taken_at, reverse=True)
    proven = [each for each in newest_first if each.is_proven]
    stays = {each.number for each in (*newest_first[:1], *proven[:1])}
    stays |= _newest_of(proven, keep_daily, by=lambda at: at.date())
    stays |= _newest_of(proven, keep_weekly, by=lambda at: at.isocalendar()[:2])
    return [each.number for each in reversed(newest_first) if each.number not in stays]


def _newest_of(
    newest_first: Iterable[Kept], most: int, *, by: Callable[[dt.datetime], Hashable]
) -> set[int]:
    """Return the first of each period, of so many periods."""
    first: dict[Hashable, int] = {}
    for each in newest_first:
        period = by(each.taken_at.astimezone(dt.UTC))
        if period not in first and len(first) < most:
            first[period] = each.number
    return set(first.values())
