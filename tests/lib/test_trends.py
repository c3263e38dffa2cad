"""A line through daily samples, and where it leads."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lib.trends import days_until, trend_of

FIRST = dt.date(2026, 11, 1)


def samples(*values: float) -> dict[dt.date, float]:
    return {FIRST + dt.timedelta(days=n): value for n, value in enumerate(values)}


def test_growth_is_that_of_the_line_of_least_squares() -> None:
    assert trend_of(samples(10, 12, 14, 16, 18, 20, 22)).growth == pytest.approx(2)
    assert trend_of(samples(5, 5, 5, 5, 5, 5, 5)).growth == pytest.approx(0)
    # By hand: of 0..6 against 0, 0, 0, 7, 0, 0, 14 it is (21 + 84 - 7*3*3) / 28.
    assert trend_of(samples(0, 0, 0, 7, 0, 0, 14)).growth == pytest.approx(1.5)


def test_days_that_were_not_measured_make_no_difference() -> None:
    there = {day: n for day, n in samples(*range(0, 40, 2)).items() if day.day % 3}
    assert trend_of(there).growth == pytest.approx(2)


def test_fewer_than_seven_days_say_nothing() -> None:
    assert trend_of(samples(1, 2, 3, 4, 5, 6)).growth is None
    assert trend_of({}).growth is None


@pytest.mark.parametrize(
    ("used", "growth", "days"),
    [(90, 1, 10), (90, 3, 4), (90, 0, None), (90, -1, None), (100, 0, 0), (120, -1, 0)],
)
def test_days_until_a_hundred(used: float, growth: float, days: int | None) -> None:
    assert days_until(used, 100, growth=growth) == days
