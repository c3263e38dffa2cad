"""Days as people type them."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.lib.times import parse_date

TODAY = dt.date(2026, 11, 25)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-12-24", dt.date(2026, 12, 24)),
        ("24 Dec", dt.date(2026, 12, 24)),
        ("24. december", dt.date(2026, 12, 24)),
        ("Thu, 24 Dec 2026", dt.date(2026, 12, 24)),
        ("March 3", dt.date(2027, 3, 3)),
        ("25 nov", TODAY),
        ("29 Feb 2028", dt.date(2028, 2, 29)),
    ],
)
def test_days_are_read(text: str, day: dt.date) -> None:
    assert parse_date(text, today=TODAY) == day


@pytest.mark.parametrize("text", ["", "24", "31 Feb", "24/12/2026", "soon", "٣ dec"])
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Not a date"):
        parse_date(text, today=TODAY)
