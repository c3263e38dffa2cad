"""Which checkpoints are kept: days and weeks that have one, and always a proven one."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.recipes.retention import Kept, to_remove

NOW = dt.datetime(2026, 11, 29, 2, 30, tzinfo=dt.UTC)  # a Sunday


def kept(*hours_ago: float, unproven: tuple[int, ...] = ()) -> list[Kept]:
    """Return checkpoints numbered from the first one on."""
    return [
        Kept(
            number=number,
            taken_at=NOW - dt.timedelta(hours=hours),
            is_proven=number not in unproven,
        )
        for number, hours in enumerate(hours_ago)
    ]


def test_the_newest_of_each_day_and_week_is_kept() -> None:
    daily = kept(*(24 * day for day in range(30)))

    gone = to_remove(daily, keep_daily=3, keep_weekly=3)

    # The last three days; of the weeks: its Sundays, 0, 7 and 14 days ago.
    assert sorted({*range(30)} - {*gone}) == [0, 1, 2, 7, 14]
    assert gone == sorted(gone, reverse=True)


def test_days_without_one_do_not_count() -> None:
    assert to_remove(kept(0, 24 * 40, 24 * 80), keep_daily=3, keep_weekly=0) == []


def test_of_one_day_the_newest_is_kept() -> None:
    assert to_remove(kept(0, 1, 2, 30), keep_daily=2, keep_weekly=0) == [2, 1]


@pytest.mark.parametrize(("daily", "weekly"), [(1, 0), (7, 4)])
def test_the_only_proven_one_stays_however_old(daily: int, weekly: int) -> None:
    rows = kept(0, 24, 48, 24 * 400, unproven=(0, 1, 2))

    gone = to_remove(rows, keep_daily=daily, keep_weekly=weekly)

    # Of those that are not proven, the newest says what is wrong.
    assert gone == [2, 1]


def test_one_that_is_not_proven_goes_with_the_next_that_is() -> None:
    assert to_remove(kept(0, 24, unproven=(1,)), keep_daily=7, keep_weekly=4) == [1]
    assert to_remove([], keep_daily=1, keep_weekly=0) == []
