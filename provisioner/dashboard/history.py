"""How things were, day by day: space, clones, failures. Days are those of UTC."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from provisioner.engine.models import Operation
from provisioner.sites.models import CapacityDay


@dataclass(frozen=True, kw_only=True)
class ClonesOnADay:
    day: dt.date
    clones: int


@dataclass(frozen=True, kw_only=True)
class EndedOnADay:
    """Operations that ended on a day, and how many of them failed."""

    day: dt.date
    ended: int
    failed: int


def capacity_days(*, since: dt.date) -> dict[int, list[CapacityDay]]:
    """Return the days of each site, by its id, the oldest first."""
    days = defaultdict(list)
    for day in CapacityDay.objects.filter(day__gte=since):
        days[day.site_id].append(day)
    return days


def clones_by_day(days: Mapping[int, Iterable[CapacityDay]]) -> list[ClonesOnADay]:
    """Return how many clones all sites together had, on days that were measured."""
    clones: Counter[dt.date] = Counter()
    for of_site in days.values():
        for day in of_site:
            clones[day.day] += day.clones
    return [ClonesOnADay(day=day, clones=clones[day]) for day in sorted(clones)]


def failures_by_day(*, days: int) -> list[EndedOnADay]:
    """Return each of the last days, today included; [] where nothing ended."""
    today = timezone.now().astimezone(dt.UTC).date()
    first = today - dt.timedelta(days=days - 1)
    midnight = dt.datetime.combine(first, dt.time(), tzinfo=dt.UTC)
    rows = (
        Operation.objects.filter(ended_at__gte=midnight)
        .order_by()
        .annotate(day=TruncDate("ended_at", tzinfo=dt.UTC))
        .values_list("day")
        .annotate(ended=Count("pk"), failed=Count("pk", filter=Q(state="failed")))
    )
    known = {day: (ended, failed) for day, ended, failed in rows}
    if not known:
        return []
    every = (first + dt.timedelta(days=number) for number in range(days))
    return [
        EndedOnADay(day=day, ended=ended, failed=failed)
        for day in every
        for ended, failed in [known.get(day, (0, 0))]
    ]
