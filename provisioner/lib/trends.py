"""Where a number goes if it goes on as it did: a line through daily samples."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from statistics import linear_regression

FEWEST_DAYS = 7


def daily_growth(samples: Mapping[dt.date, float]) -> float | None:
    """Return how much a number grows each day, by linear regression.

    None with fewer than seven days: too few to say anything.
    """
    if len(samples) < FEWEST_DAYS:
        return None
    days = [day.toordinal() for day in samples]
    return linear_regression(days, list(samples.values())).slope


def days_until(used: float, allowed: float, *, growth: float) -> int | None:
    """Return in how many days it is full, 0 if it is now, None if it does not grow."""
    if used >= allowed:
        return 0
    return math.ceil((allowed - used) / growth) if growth > 0 else None
