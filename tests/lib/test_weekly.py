"""Hours of the week as people write them."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lib.weekly import number_at, parse_window

MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)


def at(day: int, time: str) -> dt.datetime:
    hours, minutes = map(int, time.split(":"))
    return MONDAY + dt.timedelta(days=day, hours=hours, minutes=minutes)


@pytest.mark.parametrize(
    ("line", "day", "time", "covers"),
    [
        ("mon-fri 07:00-19:00 20", 0, "07:00", True),
        ("mon-fri 07:00-19:00 20", 4, "18:59", True),
        ("mon-fri 07:00-19:00 20", 4, "19:00", False),
        ("mon-fri 07:00-19:00 20", 5, "12:00", False),
        ("mon,wed 00:00-24:00 1", 2, "23:59", True),
        ("mon,wed 00:00-24:00 1", 1, "00:00", False),
        ("fri 22:00-06:00 3", 4, "22:00", True),
        ("fri 22:00-06:00 3", 5, "05:59", True),
        ("fri 22:00-06:00 3", 4, "05:59", False),
        ("fri 22:00-06:00 3", 5, "06:00", False),
        ("sun 22:00-06:00 3", 0, "01:00", True),
        ("sat-mon 10:00-11:00 3", 6, "10:30", True),
        ("sat-mon 10:00-11:00 3", 3, "10:30", False),
        (" Mon-Sun   08:00-09:00   4 ", 3, "08:30", True),
    ],
)
def test_a_window_covers_its_days_and_times(
    line: str, day: int, time: str, covers: bool
) -> None:
    assert parse_window(line).covers(at(day, time)) is covers


def test_times_are_utc() -> None:
    east = dt.timezone(dt.timedelta(hours=5))
    moment = dt.datetime(2026, 11, 23, 3, 0, tzinfo=east)  # Sunday 22:00 UTC

    assert parse_window("sun 22:00-23:00 1").covers(moment)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "mon 07:00-19:00",
        "07:00-19:00 20",
        "mon 7-19 20",
        "monday 07:00-19:00 20",
        "mon- 07:00-19:00 20",
        "mon, 07:00-19:00 20",
        "mon 07:00-24:01 20",
        "mon 07:60-19:00 20",
        "mon 24:00-07:00 20",
        "mon 07:00-07:00 20",
        "mon 07:00-19:00 -1",
        "mon 07:00-19:00 20 x",
    ],
)
def test_other_lines_are_refused_in_a_sentence(line: str) -> None:
    with pytest.raises(ValueError, match=r"“.*\.$"):
        parse_window(line)


def test_the_first_line_that_fits_counts() -> None:
    lines = ["mon 08:00-09:00 5", "mon-fri 00:00-24:00 3"]

    found = [number_at(at(0, t), lines, otherwise=1) for t in ("08:30", "09:00")]

    assert [*found, number_at(at(6, "08:30"), lines, otherwise=1)] == [5, 3, 1]
