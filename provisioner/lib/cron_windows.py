"""Windows of time that begin by cron, one a line: "0 2 * * sun 90" lasts 90 minutes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from provisioner.lib.schedules import is_schedule, last_time

LONGEST_MINUTES = 7 * 24 * 60


def check_windows(text: str) -> None:
    """Check the lines that somebody entered; empty ones are skipped.

    Raises: ValueError, with a sentence.
    """
    for line in _lines(text):
        cron, _, minutes = line.rpartition(" ")
        if not is_schedule(cron) or not minutes.isascii() or not minutes.isdecimal():
            raise ValueError(
                f"“{line}” is not like “0 2 * * sun 90”: five fields as in cron (in "
                "UTC), then minutes."
            )
        if not 1 <= int(minutes[:9]) <= LONGEST_MINUTES:
            raise ValueError(
                f"“{line}” must last 1 to {LONGEST_MINUTES:,} minutes, a week."
            )


def window_end(text: str, *, now: dt.datetime) -> dt.datetime | None:
    """Return when the last of the present windows ends; None outside of them."""
    ends = []
    for line in _lines(text):
        cron, _, minutes = line.rpartition(" ")
        began = last_time(cron, now=now)
        assert began is not None, "checked before it was stored"
        ends.append(began + dt.timedelta(minutes=int(minutes)))
    return max((end for end in ends if end > now), default=None)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if words := line.split():
            yield " ".join(words)
