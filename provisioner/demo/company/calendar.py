"""When things happen in a studio: in office hours, seldom at weekends."""

from __future__ import annotations

import datetime as dt
import random
from bisect import bisect_right
from itertools import accumulate
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")
HOUR = dt.timedelta(hours=1)
OF_A_WEEKDAY = (1.0, 1.05, 1.05, 1.0, 0.8, 0.06, 0.04)
OF_AN_HOUR = (
    *(0.02, 0.01, 0.01, 0.01, 0.01, 0.02, 0.05, 0.25, 0.7, 1.2, 1.5, 1.3),
    *(0.6, 1.1, 1.5, 1.4, 1.2, 0.9, 0.5, 0.25, 0.18, 0.15, 0.1, 0.05),
)


class Calendar:
    """Moments before `now`, mostly in office hours; `days` is how far back they go."""

    def __init__(self, now: dt.datetime, *, days: int, chance: random.Random) -> None:
        self.now, self.days, self.chance = now, days, chance
        self.began = now - dt.timedelta(days=days)
        hours = (self.began + HOUR * n for n in range(days * 24))
        local = (hour.astimezone(ZONE) for hour in hours)
        self._until = list(
            accumulate(
                OF_A_WEEKDAY[hour.weekday()] * OF_AN_HOUR[hour.hour] for hour in local
            )
        )

    def moment(self, *, after: dt.datetime, before: dt.datetime) -> dt.datetime:
        """Return a moment in between, most likely in office hours."""
        low, high = self._weight_at(after), self._weight_at(before)
        wanted = self.chance.uniform(low, high)
        hour = min(bisect_right(self._until, wanted), len(self._until) - 1)
        found = self.began + HOUR * (hour + self.chance.random())
        return min(max(found, after), before)

    def moments(
        self, number: int, *, after: dt.datetime, before: dt.datetime
    ) -> list[dt.datetime]:
        """Return so many of these moments, earliest first."""
        return sorted(self.moment(after=after, before=before) for _ in range(number))

    def ago(self, **span: float) -> dt.datetime:
        """Return the moment so many days, hours or minutes before now."""
        return self.now - dt.timedelta(**span)

    def seconds(self, usual: float, *, spread: float = 0.35) -> dt.timedelta:
        """Return about so many seconds: seldom half of it, seldom twice as much."""
        return dt.timedelta(seconds=usual * self.chance.lognormvariate(0, spread))

    def _weight_at(self, moment: dt.datetime) -> float:
        hours = (moment - self.began) / HOUR
        place = int(min(max(hours, 0), len(self._until) - 1))
        return self._until[place]
