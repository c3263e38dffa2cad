"""Durations and moments as text for people."""

from __future__ import annotations

import datetime as dt
import math
import re
from contextlib import suppress

from django.utils import timezone

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def duration_text(seconds: float) -> str:
    """Return a duration in its largest units: "16 ms", "0.4 s", "3 min 20 s", "2 h"."""
    if seconds < 0.0995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two_units(whole, unit=MINUTE, name="min", part=1, part_name="s")
    if whole < DAY:
        return _two_units(whole, unit=HOUR, name="h", part=MINUTE, part_name="min")
    return _two_units(whole, unit=DAY, name="d", part=HOUR, part_name="h")


def rough_text(seconds: float) -> str:
    """Return a forecast, rounded up: "7 s", "25 s", "3 min"."""
    if seconds <= 10:
        return f"{max(math.ceil(seconds), 1)} s"
    if seconds <= MINUTE - 5:
        return f"{5 * math.ceil(seconds / 5)} s"
    if seconds <= HOUR - MINUTE:
        return f"{math.ceil(seconds / MINUTE)} min"
    return duration_text(MINUTE * math.ceil(seconds / MINUTE))


def _two_units(whole: int, *, unit: int, name: str, part: int, part_name: str) -> str:
    rest = whole % unit // part
    return f"{whole // unit} {name}" + (f" {rest} {part_name}" if rest else "")


def exact_text(moment: dt.datetime, *, seconds: bool = False) -> str:
    """Return a moment in its own zone: "Sat 21 Nov 2026, 23:05 CET"."""
    zone = moment.tzname() or ""
    if zone[:1] in ("+", "-"):  # a zone without a name of its own
        zone = f"UTC{zone}"
    clock = "%H:%M:%S" if seconds else "%H:%M"
    return moment.strftime(f"%a %d %b %Y, {clock} ") + zone


_DATES = ("%Y-%m-%d", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y")
_WEEKDAY = re.compile(r"^(mon|tue|wed|thu|fri|sat|sun)[a-z]*\s+")


def parse_date(text: str, *, today: dt.date) -> dt.date:
    """Return the day that a text means: "2026-12-24", "24 Dec 2026", "Thu 24 Dec".

    Without a year it is the next such day.

    Raises: ValueError if it is no date.
    """
    said = " ".join(text.lower().replace(",", " ").replace(".", " ").split())
    said = _WEEKDAY.sub("", said)
    for way in _DATES:
        with suppress(ValueError):
            return dt.datetime.strptime(said, way).date()
    for year in (today.year, today.year + 1):
        for way in _DATES[1:]:
            with suppress(ValueError):
                day = dt.datetime.strptime(f"{said} {year}", way).date()
                if day >= today:
                    return day
    raise ValueError(f"Not a date: {text!r}")


def age_text(then: dt.datetime, *, now: dt.datetime) -> str:
    """Return how long ago, or in how long, something is, in its largest unit."""
    seconds = (now - then).total_seconds()
    if abs(seconds) < 10:
        return "just now" if seconds >= 0 else "in a moment"
    span = largest_unit(abs(seconds))
    return f"{span} ago" if seconds > 0 else f"in {span}"


def largest_unit(seconds: float) -> str:
    for length, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        count = int(seconds // length)
        if count:
            return f"{count} {name}" + ("s" if count > 1 else "")
    return f"{int(seconds)} seconds"


def exact(moment: dt.datetime) -> str:
    """Return a moment in the reader's zone: "Sat 21 Nov 2026, 23:05 CET".

    On pages and in mails that is the reader's zone, elsewhere UTC.
    """
    return exact_text(timezone.localtime(moment))


def recorded(moment: dt.datetime) -> str:
    """Return a moment for the audit log: "Sat 21 Nov 2026, 22:05 UTC"."""
    return exact_text(moment.astimezone(dt.UTC))
