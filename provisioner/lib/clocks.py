"""Clocks: the database's decides, as all processes share it.

A worker whose own is wrong would end leases and empty the trash before their time.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator
from contextvars import ContextVar

from django.db import connection

MAY_BE_OFF_SECONDS = 60.0

# The time that everything in this block happens at: [] until somebody asks.
_moment: ContextVar[list[dt.datetime] | None] = ContextVar("moment", default=None)


def database_now() -> dt.datetime:
    """Return the database's time; within `one_moment`, always the same."""
    moment = _moment.get()
    if moment:
        return moment[0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [now] = cursor.fetchone()
    assert isinstance(now, dt.datetime)
    return noted(now)


def noted(now: dt.datetime) -> dt.datetime:
    """Take over a time that another statement brought with it.

    Return the time of `one_moment`: this one, unless it has one already.
    """
    moment = _moment.get()
    if moment is None:
        return now
    if not moment:
        moment.append(now)
    return moment[0]


@contextlib.contextmanager
def one_moment() -> Iterator[None]:
    """Have what is written in one transaction happen at one time.

    The database is asked when its time is first needed. Begin it after locks that may
    be waited for, and never around a remote call.
    """
    token = _moment.set([])
    try:
        yield
    finally:
        _moment.reset(token)


def boottime() -> float:
    """Return a clock that also runs while the process or its machine is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def seconds_ahead_here() -> float:
    """Ask the database how far the clock of this process is ahead."""
    asked_at = time.time()
    database = database_now().timestamp()
    return seconds_ahead(asked_at=asked_at, database=database, answered_at=time.time())


def seconds_ahead(*, asked_at: float, database: float, answered_at: float) -> float:
    """Return how far our clock is ahead of the database's, negative if behind.

    A slow answer does not count against a clock: 0 if the database's time may lie
    between question and answer.
    """
    return max(asked_at - database, 0.0) or min(answered_at - database, 0.0)


def is_right(ahead_seconds: float) -> bool:
    """Return whether a clock that is so far ahead may still decide anything."""
    return abs(ahead_seconds) <= MAY_BE_OFF_SECONDS


def off_text(ahead_seconds: float) -> str:
    """Return how far a clock is off: "90 seconds ahead of the database's"."""
    side = "ahead of" if ahead_seconds > 0 else "behind"
    return f"{abs(ahead_seconds):,.0f} seconds {side} the database's"
