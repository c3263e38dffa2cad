"""When limits will be reached at the rate of the last weeks.

Everything measured or counted daily has a rate: the space of an aggregate, the volumes
of an SVM and their maximum sizes; clones, snapshots and files of a template's volume;
workspaces and space of a team.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from provisioner.lib.limits import Limit, Overcommitted, SpaceLow, VolumeLimitReached
from provisioner.lib.trends import FEWEST_DAYS, Trend, days_until, trend_of
from provisioner.limits.queries import SiteLimits
from provisioner.limits.samples import DAYS_KEPT, OF_TEMPLATES, Key, Trends
from provisioner.sites.models import AggregateDay, CapacityDay

WINDOW = dt.timedelta(days=DAYS_KEPT)
LONGEST_DAYS = 730
_SAMPLED: dict[str, Callable[[CapacityDay], int | None]] = {
    SpaceLow.code: lambda day: day.used_bytes,
    VolumeLimitReached.code: lambda day: day.volumes,
    Overcommitted.code: lambda day: day.provisioned_bytes,
}


_SAMPLED_OF_OTHERS: dict[str, Callable[[AggregateDay], int | None]] = {
    SpaceLow.code: lambda day: day.used_bytes,
    Overcommitted.code: lambda day: day.provisioned_bytes,
}
OfOthers = Mapping[tuple[int, str], Sequence[AggregateDay]]
"""The latest days of aggregates besides the sites' own, by id of site and name."""

_OF_SITES = ("space_low", "volume_limit", "node_volume_limit", "overcommitted")


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A limit, and the days until it is reached; None if unknown.

    `trend` is None if the limit is not measured daily.
    """

    limit: Limit
    trend: Trend | None = None
    is_quota: bool = False

    @property
    def title(self) -> str:
        """The limit, with whose it is where its title does not say that."""
        limit = self.limit
        is_named = limit.code not in _OF_SITES
        return limit.title if is_named else f"{limit.title}, {limit.subject}"

    @property
    def growth(self) -> float | None:
        return self.trend and self.trend.growth

    @property
    def days(self) -> int | None:
        limit = self.limit
        if limit.used is None or limit.allowed is None:
            return None
        return days_until(limit.used, limit.allowed, growth=self.growth or 0)

    @property
    def is_soon(self) -> bool:
        return self.days is not None and self.days <= WINDOW.days

    @property
    def sentence(self) -> str:
        if self.days == 0:
            return "Full now"
        if self.trend is None:
            return ""
        if self.growth is None:
            return f"No forecast: {self.trend.days} of {FEWEST_DAYS} days measured"
        if self.days is None:
            return "Not growing"
        if self.days > LONGEST_DAYS:
            return "Not within two years at this rate"
        unit = "day" if self.days == 1 else "days"
        return f"Full in {self.days} {unit} at this rate"


def nearest_forecasts(
    sites: Iterable[SiteLimits],
    days: Mapping[int, list[CapacityDay]],
    *,
    of_others: OfOthers,
    of_templates: Trends,
    most: int,
) -> list[Forecast]:
    """Return the limits that will be reached first, by days left, then by share used.

    `days` are the latest days of each site, by its id, and `of_others` those of their
    other aggregates; `of_templates` are the trends of their templates' limits.
    """
    forecasts = (
        Forecast(
            limit=limit,
            trend=_trend(limit, of_site.site.pk, days, of_others, of_templates),
        )
        for of_site in sites
        for limit in of_site.limits
        if limit.percent
    )
    return nsmallest(most, forecasts, key=_nearness)


def nearest_quotas(
    quotas: Iterable[Limit], *, trends: Trends, most: int
) -> list[Forecast]:
    """Return the team quotas that will be reached first, as `nearest_forecasts`."""
    forecasts = (
        Forecast(
            limit=quota,
            trend=trends.get(Key(None, quota.subject, quota.code), Trend()),
            is_quota=True,
        )
        for quota in quotas
        if quota.percent
    )
    return nsmallest(most, forecasts, key=_nearness)


def _nearness(forecast: Forecast) -> tuple[float, int]:
    days = forecast.days
    is_far = days is None or days > LONGEST_DAYS
    return math.inf if is_far else float(days or 0), -(forecast.limit.percent or 0)


def _trend(
    limit: Limit,
    site_id: int,
    days: Mapping[int, list[CapacityDay]],
    of_others: OfOthers,
    of_templates: Trends,
) -> Trend | None:
    """Return the trend of a limit; None if it is not measured daily."""
    if limit.code in OF_TEMPLATES:
        return of_templates.get(Key(site_id, limit.subject, limit.code), Trend())
    if limit.part and (of_other := _SAMPLED_OF_OTHERS.get(limit.code)):
        others = of_others.get((site_id, limit.part), [])
        return _fitted({day.day: of_other(day) for day in others})
    sampled = _SAMPLED.get(limit.code) if not limit.part else None
    if sampled is None:
        return None
    return _fitted({day.day: sampled(day) for day in days.get(site_id, [])})


def _fitted(values: Mapping[dt.date, int | None]) -> Trend:
    found = {day: float(value) for day, value in values.items() if value is not None}
    newest = max(found, default=dt.date.min)
    return trend_of({day: n for day, n in found.items() if newest - day < WINDOW})
