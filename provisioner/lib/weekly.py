"""Numbers for hours of the week, as people write them: "mon-fri 07:00-19:00 20"."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_A_DAY = 24 * 60
_WINDOW = re.compile(
    r"(?P<days>[a-z]+(?:[,-][a-z]+)*) "
    r"(?P<begin>\d\d:\d\d)-(?P<end>\d\d:\d\d) (?P<number>\d{1,5})"
)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A number for certain days between two times, in UTC.

    `days` are 0 for Monday to 6; `begin` and `end` are minutes of the day. A window
    that ends before it begins extends into the next morning.
    """

    days: frozenset[int]
    begin: int
    end: int
    number: int

    def covers(self, moment: dt.datetime) -> bool:
        moment = moment.astimezone(dt.UTC)
        today, minute = moment.weekday(), moment.hour * 60 + moment.minute
        if self.begin < self.end:
            return today in self.days and self.begin <= minute < self.end
        yesterday = (today - 1) % 7
        return (today in self.days and minute >= self.begin) or (
            yesterday in self.days and minute < self.end
        )


def parse_window(text: str) -> Window:
    """Read a line: days, begin and end (24:00 ends a day), a number.

    Raises: ValueError, with a sentence.
    """
    match = _WINDOW.fullmatch(" ".join(text.lower().split()))
    if match is None:
        raise ValueError(
            f"“{text}” is not like “mon-fri 07:00-19:00 20”: days, times, a number."
        )
    begin, end = _minutes(match["begin"]), _minutes(match["end"])
    if begin in (end, MINUTES_A_DAY):
        raise ValueError(f"“{text}” lasts no time; a whole day is 00:00-24:00.")
    days = frozenset(day for part in match["days"].split(",") for day in _days(part))
    return Window(days=days, begin=begin, end=end, number=int(match["number"]))


def number_at(moment: dt.datetime, lines: Iterable[str], *, otherwise: int) -> int:
    """Return the number of the first line that covers a moment."""
    for line in lines:
        window = parse_window(line)
        if window.covers(moment):
            return window.number
    return otherwise


def _days(part: str) -> list[int]:
    first, has_end, last = part.partition("-")
    last = last if has_end else first
    if first not in DAYS or last not in DAYS:
        raise ValueError(f"“{part}” is no day, nor days; these are {', '.join(DAYS)}.")
    begin, end = DAYS.index(first), DAYS.index(last)
    return [day % 7 for day in range(begin, end + 1 if begin <= end else end + 8)]


def _minutes(text: str) -> int:
    hours, minutes = int(text[:2]), int(text[3:])
    if minutes > 59 or hours * 60 + minutes > MINUTES_A_DAY:
        raise ValueError(f"“{text}” is no time of a day.")
    return hours * 60 + minutes
