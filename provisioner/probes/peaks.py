"""Peaks of how many commands run at a server, and the way back to its baseline."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

PEAK_TIMES = 2.0
PEAK_MORE = 5
# Readings come every five minutes; after a longer pause nobody knows what happened.
BLIND_AFTER = dt.timedelta(minutes=12)

Counts = Sequence[tuple[dt.datetime, int]]


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
    highest: tuple[dt.datetime, int] | None = None
    last_at: dt.datetime | None = None
    for at, processes in counts:
        if highest and last_at and at - last_at > BLIND_AFTER:
            peaks.append(Peak(at=highest[0], processes=highest[1], took=None))
            highest = None
        if highest and processes <= baseline:
            took = at - highest[0]
            peaks.append(Peak(at=highest[0], processes=highest[1], took=took))
            highest = None
        elif processes >= threshold and (highest is None or processes > highest[1]):
            highest = (at, processes)
        last_at = at
    if highest:
        peaks.append(Peak(at=highest[0], processes=highest[1], took=None))
    return peaks
