from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lib.times import age_text, duration_text, rough_text

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.04, "40 ms"),
        (0.0996, "0.1 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-5, "in a moment"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86_400 * 3, "3 days ago"),
        (-40, "in 40 seconds"),
        (-3600, "in 1 hour"),
    ],
)
def test_ages_have_their_largest_unit(seconds: float, text: str) -> None:
    assert age_text(NOW - dt.timedelta(seconds=seconds), now=NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 s"),
        (6.2, "7 s"),
        (10, "10 s"),
        (10.1, "15 s"),
        (55, "55 s"),
        (56, "1 min"),
        (61, "2 min"),
        (3540, "59 min"),
        (3541, "1 h"),
        (5000, "1 h 24 min"),
    ],
)
def test_a_forecast_is_rounded_up(seconds: float, text: str) -> None:
    assert rough_text(seconds) == text
