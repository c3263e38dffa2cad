"""Schedules as in cron: minute, hour, day, month, day of the week, in UTC."""

from __future__ import annotations

import datetime as dt
import re

from croniter import croniter
from croniter.croniter import CroniterError

from provisioner.lib.refusals import InvalidRequest

LONGEST = 100
# The library's own letters for times that it makes up.
_RANDOM = re.compile(r"[rhRH](?![A-Za-z])")


def read_schedule(text: str, *, field: str) -> str:
    """Return a schedule that somebody entered, with single blanks.

    Raises: InvalidRequest at the field.
    """
    schedule = " ".join(text.split())
    if not schedule:
        message = "A schedule is missing, such as 0 3 * * mon-fri."
        raise InvalidRequest.at(field, message)
    if len(schedule) <= LONGEST and is_never(schedule):
        raise InvalidRequest.at(
            field, f"The schedule {schedule} never comes: its months have no such day."
        )
    if len(schedule) > LONGEST or not is_schedule(schedule):
        raise InvalidRequest.at(
            field,
            "The schedule needs five fields as in cron (minute, hour, day, month, day "
            "of the week), such as 0 3 * * mon-fri.",
        )
    return schedule


def last_time(cron: str, *, now: dt.datetime) -> dt.datetime | None:
    """Return the last due time of a schedule; None if there is none."""
    just_after = now.astimezone(dt.UTC) + dt.timedelta(microseconds=1)
    try:
        at = croniter(cron, just_after).get_prev(dt.datetime)
    except CroniterError:
        return None
    assert isinstance(at, dt.datetime)
    return at


def is_schedule(cron: str) -> bool:
    """Return whether it is a five-field schedule with a due time."""
    fields = cron.split()
    if len(fields) != 5 or any(_RANDOM.match(field) for field in fields):
        return False
    if not croniter.is_valid(cron):
        return False
    return last_time(cron, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) is not None


def is_never(cron: str) -> bool:
    """Return whether the schedule is well formed, but has no time: 0 3 30 2 *."""
    fields = cron.split()
    return (
        len(fields) == 5
        and not any(_RANDOM.match(field) for field in fields)
        and croniter.is_valid(cron)
        and not is_schedule(cron)
    )


def are_same_times(one: str, other: str) -> bool:
    """Return whether two valid schedules have the same times: sun is 0, and 7."""
    return bool(croniter.expand(one)[0] == croniter.expand(other)[0])


def next_time(schedule: str, *, after: dt.datetime) -> dt.datetime:
    """Return the first due time of a valid schedule after a moment."""
    at = croniter(schedule, after.astimezone(dt.UTC)).get_next(dt.datetime)
    assert isinstance(at, dt.datetime)
    return at
