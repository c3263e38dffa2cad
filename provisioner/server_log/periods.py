"""Times that sums are asked for: whole hours, or whole days of longer ones."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.conf import settings

from provisioner.lib import clocks
from provisioner.server_log.models import Span

DEFAULT_DAYS = 1
# Longer times are told by the day: sums by hour are not kept for ever, and are many.
HOURS_UP_TO = dt.timedelta(days=2)
_HOUR, _DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
# Beyond these, days cannot be added to a time.
_FIRST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_LAST = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, kw_only=True)
class Period:
    """From `begin` until just before `end`, in whole hours or whole days (UTC)."""

    begin: dt.datetime
    end: dt.datetime
    span: Span

    @property
    def step(self) -> dt.timedelta:
        return _HOUR if self.span == Span.HOUR else _DAY

    @property
    def parts(self) -> list[tuple[Span, dt.datetime, dt.datetime]]:
        """The period in as few spans as make it up: whole weeks, and days around."""
        first = self.begin + _DAY * (-self.begin.weekday() % 7)
        last = self.end - _DAY * self.end.weekday()
        if self.span == Span.HOUR or last <= first:
            return [(self.span, self.begin, self.end)]
        parts = (
            (Span.DAY, self.begin, first),
            (Span.WEEK, first, last),
            (Span.DAY, last, self.end),
        )
        return [(span, begin, end) for span, begin, end in parts if begin < end]

    @property
    def said(self) -> str:
        """The period in words."""
        if self.span == Span.DAY:
            last = self.end - self.step
            return f"Whole days (UTC) count: {self.begin:%-d %b} to {last:%-d %b %Y}."
        return (
            f"Whole hours count: {self.begin:%-d %b %H:%M} to "
            f"{self.end:%-d %b %Y %H:%M} UTC."
        )


def period_of(
    *,
    days: int = DEFAULT_DAYS,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> Period:
    """Return the hours or days that a time has a part of.

    By itself the last `days`, or those before `until`.
    """
    now = clocks.database_now()
    begin = since or (until or now) - dt.timedelta(days=days)
    end = max(until or now, begin)
    by_hour_since = (now - dt.timedelta(days=settings.SERVER_LOG_DAYS)).date()
    is_short = end - begin <= HOURS_UP_TO + _HOUR
    by_hour = is_short and begin.astimezone(dt.UTC).date() >= by_hour_since
    step = _HOUR if by_hour else _DAY
    first = _floor(begin, step)
    return Period(
        begin=first,
        end=max(-((first - end) // step) * step + first, first + step),
        span=Span.HOUR if by_hour else Span.DAY,
    )


def why_no_time(
    *, since: dt.datetime | None, until: dt.datetime | None
) -> dict[str, str]:
    """Return a sentence for each end that does not make a time; none if both do."""
    why = {
        name: "Choose a time between 2000 and 2100."
        for name, moment in (("since", since), ("until", until))
        if moment is not None and not _FIRST <= moment <= _LAST
    }
    if not why and since is not None and until is not None and until <= since:
        why["until"] = "This time is not after the first one. Choose a later one."
    return why


def _floor(moment: dt.datetime, step: dt.timedelta) -> dt.datetime:
    zero = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return zero + (moment - zero) // step * step
