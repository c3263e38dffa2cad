"""Linear trends of daily samples."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from statistics import linear_regression
from typing import NamedTuple

FEWEST_DAYS = 7


class Trend(NamedTuple):
    """The daily growth of a number, by linear regression over so many days."""

    days: int = 0
    slope: float | None = None

    @property
    def growth(self) -> float | None:
        """The growth per day; None with fewer than seven days, which say too little."""
        return self.slope if self.days >= FEWEST_DAYS else None


def trend_of(samples: Mapping[dt.date, float]) -> Trend:
    """Return the linear trend of daily samples."""
    if len(samples) < 2:  # a line takes two points
        return Trend(days=len(samples))
    days = [day.toordinal() for day in samples]
    line = linear_regression(days, list(samples.values()))
    return Trend(days=len(days), slope=line.slope)


def days_until(used: float, allowed: float, *, growth: float) -> int | None:
    """Return in how many days it is full; 0 if it is, None if it does not grow."""
    if used >= allowed:
        return 0
    return math.ceil((allowed - used) / growth) if growth > 0 else None
