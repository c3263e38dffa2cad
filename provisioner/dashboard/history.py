"""History of a period: daily measurements, and ended operations."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, Q

from provisioner.engine.models import Operation
from provisioner.lib.periods import period_of
from provisioner.sites.models import AggregateDay, CapacityDay


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How many operations ended, and how many of them failed."""

    number: int
    failed: int


def capacity_days(*, since: dt.date) -> dict[int, list[CapacityDay]]:
    """Return the days of each site, by its id, oldest first. Days are in UTC."""
    days = defaultdict(list)
    for day in CapacityDay.objects.filter(day__gte=since):
        days[day.site_id].append(day)
    return days


def other_aggregate_days(
    *, since: dt.date
) -> dict[tuple[int, str], list[AggregateDay]]:
    """Return the days of aggregates besides the sites' own, oldest first.

    By the id of the site and the name.
    """
    days = defaultdict(list)
    for day in AggregateDay.objects.filter(day__gte=since):
        days[day.site_id, day.name].append(day)
    return days


def ended_in(
    *, since: dt.datetime, until: dt.datetime, by_hour: bool
) -> dict[dt.datetime, Ended]:
    """Return the ended operations by the hour or day of their request, in UTC."""
    rows = (
        Operation.objects.filter(
            created_at__gte=since, created_at__lt=until, ended_at__isnull=False
        )
        .order_by()
        .annotate(at=period_of("created_at", by_hour=by_hour))
        .values_list("at")
        .annotate(number=Count("pk"), failed=Count("pk", filter=Q(state="failed")))
    )
    return {at: Ended(number=number, failed=failed) for at, number, failed in rows}
