"""Peaks of how many commands run at a server, and the way back to its baseline."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

PEAK_TIMES = 2.0
PEAK_MORE = 5
# Readings come every five minutes; after a longer pause nobody knows what happened.
BLIND_AFTER_SECONDS = 12 * 60

Counts = Sequence[tuple[int, int]]
"""Seconds since 1970, and how many commands ran then."""


@dataclass(frozen=True, kw_only=True)
class Peak:
    """A time above twice the baseline: its highest count, and when that was.

    `took` is from then until the baseline was reached again. None: it is not yet, or
    nothing was read in between.
    """

    at: dt.datetime
    processes: int
    took: dt.timedelta | None


def baseline_of(counts: Counts) -> float | None:
    """Return the median of the counts, None if there is none."""
    return median(processes for _, processes in counts) if counts else None


def peaks_of(counts: Counts) -> list[Peak]:
    """Return the peaks, oldest first.

    A peak is at least twice the baseline, and five more than that; it lasts until the
    baseline is reached again.
    """
    baseline = baseline_of(counts)
    if baseline is None:
        return []
    threshold = max(PEAK_TIMES * baseline, baseline + PEAK_MORE)
    peaks: list[Peak] = []
    highest: tuple[int, int] | None = None
    last_at: int | None = None
    for at, processes in counts:
        if highest and last_at and at - last_at > BLIND_AFTER_SECONDS:
            peaks.append(_peak(highest, until=None))
            highest = None
        if highest and processes <= baseline:
            peaks.append(_peak(highest, until=at))
            highest = None
        elif processes >= threshold and (highest is None or processes > highest[1]):
            highest = (at, processes)
        last_at = at
    if highest:
        peaks.append(_peak(highest, until=None))
    return peaks


def _peak(highest: tuple[int, int], *, until: int | None) -> Peak:
    at, processes = highest
    return Peak(
        at=dt.datetime.fromtimestamp(at, dt.UTC),
        processes=processes,
        took=None if until is None else dt.timedelta(seconds=until - at),
    )
