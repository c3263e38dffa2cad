"""Two periods of measurements compared: statistics, an interval, a verdict."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from statistics import fmean, median, quantiles

FEWEST_VALUES = 20
FEWEST_DAYS = 7
FEWEST_REPEATS = 5
RESAMPLED = 1000
CONFIDENCE = 0.99
_FIRST, _SECOND = itemgetter(0), itemgetter(1)
_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)

Sample = Sequence[tuple[dt.datetime, float]]
"""When each value was measured, and the value: lower is better."""


class Outcome(StrEnum):
    """What a comparison says."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "not decided"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The statistics of one period; None: nothing was measured in it."""

    number: int
    days: int
    average: float | None = None
    median: float | None = None
    p95: float | None = None
    maximum: float | None = None
    minimum: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two periods of one measure.

    Each share is of the average: 0.805 means that it takes 80.5 % less, a negative one
    that it takes more. `adjusted` is that at the work of the first period, None where
    the work is not known. `interval` is where `share` lies with 99 % confidence, None
    with too few values. `reason` says why the outcome is what it is.
    """

    before: Summary
    after: Summary
    share: float | None
    adjusted: float | None
    interval: tuple[float, float] | None
    outcome: Outcome
    reason: str


def variance(before: float, after: float) -> float | None:
    """Return (before - after) / before: the share saved. None if nothing was needed."""
    return (before - after) / before if before else None


def summary_of(sample: Sample) -> Summary:
    values = [value for _, value in sample]
    if not values:
        return Summary(number=0, days=0)
    return Summary(
        number=len(values),
        days=len(_by_day(sample)),
        average=fmean(values),
        median=median(values),
        p95=quantiles(values, n=20, method="inclusive")[-1]
        if len(values) > 1
        else values[0],
        maximum=max(values),
        minimum=min(values),
    )


def compare_repeats(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare two runs that measured the same several times.

    Each repeat is drawn by itself, as all are of one day and one machine. What differs
    between days is not in the interval.
    """
    samples = [
        [(_EPOCH + dt.timedelta(days=day), value) for day, value in enumerate(values)]
        for values in (before, after)
    ]
    first, second = map(summary_of, samples)
    lacking = next(
        (
            f"Too few: {len(values)} repeats in the {which} run. {FEWEST_REPEATS} are "
            "needed."
            for values, which in ((before, "first"), (after, "second"))
            if len(values) < FEWEST_REPEATS
        ),
        "",
    )
    share = None
    if first.average is not None and second.average is not None:
        share = variance(first.average, second.average)
    interval = None
    if share is not None and not lacking:
        interval = _interval(*samples)
    outcome, reason = _verdict(lacking, interval, what="repeats")
    return Comparison(
        before=first,
        after=second,
        share=share,
        adjusted=None,
        interval=interval,
        outcome=outcome,
        reason=reason,
    )


def compare(
    before: Sample, after: Sample, *, work: tuple[float, float] | None = None
) -> Comparison:
    """Compare two periods, the same way each time.

    `work` is how much was done a day in each. As days differ, and neighbours are alike,
    whole days are drawn for the interval, with replacement. With few days it comes out
    too narrow: of equal weeks, one pair in 25 is still called different.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), 8.6 and 13.3.
    """
    first, second = summary_of(before), summary_of(after)
    share = adjusted = None
    if first.average is not None and second.average is not None:
        share = variance(first.average, second.average)
        if work is not None and min(work) > 0:
            adjusted = variance(first.average * work[1] / work[0], second.average)
    interval = None
    if share is not None and not _lacks(first, second):
        interval = _interval(before, after)
    outcome, reason = _verdict(_lacks(first, second), interval, what="days")
    return Comparison(
        before=first,
        after=second,
        share=share,
        adjusted=adjusted,
        interval=interval,
        outcome=outcome,
        reason=reason,
    )


def _lacks(before: Summary, after: Summary) -> str:
    """Return what is missing for a verdict, "" if nothing is."""
    for summary, which in ((before, "before"), (after, "after")):
        if not summary.number:
            return f"Nothing was measured in the period {which}."
        if summary.number < FEWEST_VALUES or summary.days < FEWEST_DAYS:
            return (
                f"Too few: {summary.number} on {summary.days} days in the period "
                f"{which}. {FEWEST_VALUES} on {FEWEST_DAYS} days are needed."
            )
    return ""


def _verdict(
    lacking: str, interval: tuple[float, float] | None, *, what: str
) -> tuple[Outcome, str]:
    if lacking:
        return Outcome.UNDECIDED, lacking
    if interval is None:
        return Outcome.UNDECIDED, "The average before is zero."
    low, high = interval
    if low > 0:
        return Outcome.BETTER, f"Less, beyond what {what} differ by."
    if high < 0:
        return Outcome.WORSE, f"More, beyond what {what} differ by."
    return Outcome.UNDECIDED, f"Overlapping: {what} differ by as much."


def _by_day(sample: Sample) -> Mapping[dt.date, list[float]]:
    days: dict[dt.date, list[float]] = {}
    for at, value in sample:
        days.setdefault(at.astimezone(dt.UTC).date(), []).append(value)
    return days


def _interval(before: Sample, after: Sample) -> tuple[float, float]:
    first, second = _totals(before), _totals(after)
    shares = sorted(
        (average - _average(second, later)) / average
        for earlier, later in _draws(len(first), len(second))
        if (average := _average(first, earlier))
    )
    tail = (1 - CONFIDENCE) / 2
    return (
        shares[round(tail * (len(shares) - 1))],
        shares[round((1 - tail) * (len(shares) - 1))],
    )


def _totals(sample: Sample) -> list[tuple[float, int]]:
    return [(sum(values), len(values)) for values in _by_day(sample).values()]


@lru_cache(maxsize=4)
def _draws(before: int, after: int) -> list[tuple[list[int], list[int]]]:
    """Return which of so many days are drawn, for each resample.

    They are the same for all measures of a report: most of its time goes into this.
    """
    chance = random.Random(2008)
    return [
        (
            chance.choices(range(before), k=before),
            chance.choices(range(after), k=after),
        )
        for _ in range(RESAMPLED)
    ]


def _average(days: Sequence[tuple[float, int]], drawn: Iterable[int]) -> float:
    of_days = [days[number] for number in drawn]
    average: float = sum(map(_FIRST, of_days)) / sum(map(_SECOND, of_days))
    return average
