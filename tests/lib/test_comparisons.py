"""Two periods compared: the arithmetic of the papers, intervals, verdicts."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from provisioner.lib.comparisons import Outcome, compare, summary_of, variance

BEGIN = dt.datetime(2026, 11, 2, tzinfo=dt.UTC)


def sample(
    *values: float, days: int = 14, begin: dt.datetime = BEGIN
) -> list[tuple[dt.datetime, float]]:
    """Values spread evenly over days."""
    step = dt.timedelta(days=days) / max(len(values), 1)
    return [(begin + number * step, value) for number, value in enumerate(values)]


def noisy(average: float, *, seed: int, spread: float = 1.0) -> list[float]:
    chance = random.Random(seed)
    return [max(0.1, chance.gauss(average, spread)) for _ in range(400)]


def test_variance_is_computed_as_rim_printed_it() -> None:
    """DIRS went from 329 to 64 s."""
    share = variance(329, 64)
    assert share is not None
    assert f"{share:.1%}" == "80.5%"
    assert variance(0, 3) is None


def test_what_rim_printed_of_opened_is_not_what_its_formula_gives() -> None:
    """Printed as -14.1 %; numbers in its ratio give -15.8 % by (before - after)/before.

    The slower time is 15.8 % more than the faster.
    """
    share = variance(19, 22)
    assert share is not None
    assert f"{share:.1%}" == "-15.8%"


def test_a_summary_says_what_the_median_hides() -> None:
    found = summary_of(sample(*[1.0] * 19, 125.0))
    assert (found.number, found.median, found.maximum, found.minimum) == (
        *(20, 1.0, 125.0, 1.0),
    )
    assert found.average == pytest.approx(7.2)
    assert found.p95 == pytest.approx(7.2)
    assert (summary_of(sample(3.0)).p95, summary_of([]).average) == (3.0, None)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [(12.0, 4.0, Outcome.BETTER), (4.0, 12.0, Outcome.WORSE)],
)
def test_a_clear_difference_is_decided(
    before: float, after: float, outcome: Outcome
) -> None:
    found = compare(
        sample(*noisy(before, seed=1)), sample(*noisy(after, seed=2), days=14)
    )
    assert found.outcome == outcome
    assert found.interval is not None
    assert found.share is not None
    assert found.interval[0] < found.share < found.interval[1]
    assert found.share == pytest.approx((before - after) / before, abs=0.1)


def test_periods_that_overlap_are_not_decided() -> None:
    same = noisy(5, seed=3)
    found = compare(sample(*same), sample(*reversed(same)))
    assert found.outcome == Outcome.UNDECIDED
    assert found.reason.startswith("Overlapping")
    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]


def test_one_bad_day_decides_nothing() -> None:
    """Ten thousand values of one slow day are one day."""
    usual = [1.0, 1.1, 0.9, 1.0] * 25
    slow = sample(*usual, *[9.0] * 100, days=2)
    rest = sample(*usual, days=12, begin=BEGIN + dt.timedelta(days=2))
    found = compare(slow + rest, sample(*usual * 2))
    assert found.share is not None
    assert found.share > 0.5
    assert found.outcome == Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (sample(), sample(*[1.0] * 50), "Nothing was measured in the period before."),
        (sample(*[1.0] * 50), sample(), "Nothing was measured in the period after."),
        (sample(*[1.0] * 50), sample(*[1.0] * 19), "Too few: 19 on 14 days"),
        (sample(*[1.0] * 500, days=6), sample(*[1.0] * 50), "Too few: 500 on 6 days"),
        (sample(*[0.0] * 50), sample(*[1.0] * 50), "The average before is zero."),
    ],
)
def test_too_little_is_said(
    before: list[tuple[dt.datetime, float]],
    after: list[tuple[dt.datetime, float]],
    says: str,
) -> None:
    found = compare(before, after)
    assert (found.outcome, found.interval) == (Outcome.UNDECIDED, None)
    assert found.reason.startswith(says)


def test_more_work_is_taken_into_account_where_it_is_known() -> None:
    """As slow as before at twice the work is half the time for the same work."""
    one = sample(*[6.0] * 50)
    assert compare(one, one, work=(100, 200)).adjusted == pytest.approx(0.5)
    assert compare(one, one, work=(100, 200)).share == 0.0
    assert compare(one, one).adjusted is None
    assert compare(one, one, work=(0, 200)).adjusted is None


def test_the_same_numbers_give_the_same_report() -> None:
    before, after = sample(*noisy(5, seed=5)), sample(*noisy(4.8, seed=6))
    assert compare(before, after) == compare(before, after)
