"""The overview of the installation for administrators. No remote call."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import (
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Min,
    Q,
    QuerySet,
)
from django.db.models.functions import Now
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template
from provisioner.dashboard.charts import charts_of
from provisioner.dashboard.history import capacity_days, other_aggregate_days
from provisioner.dashboard.savings import Lately, saved_lately
from provisioner.dashboard.spans import Span
from provisioner.dashboard.troubles import Trouble, troubles
from provisioner.dashboard.weeks import WEEK, TwoWeeks, two_weeks
from provisioner.engine import slots
from provisioner.engine.models import Operation, Step
from provisioner.engine.workers import AliveWorker, alive_workers
from provisioner.lib.percentiles import Percentile
from provisioner.limits.admission import team_limits
from provisioner.limits.forecasts import WINDOW as SAMPLED
from provisioner.limits.forecasts import (
    Forecast,
    nearest_forecasts,
    nearest_quotas,
)
from provisioner.limits.queries import SiteLimits, limits_of_sites
from provisioner.limits.samples import limit_trends
from provisioner.limits.tallies import Tallies, Tally
from provisioner.sites.models import (
    AggregateDay,
    AggregateSpace,
    CapacityDay,
    Site,
    SiteCapacity,
)
from provisioner.web.charts import Chart

FAILURES_SHOWN = 10
NEAREST_LIMITS = 4
NEAREST_QUOTAS = 3


@dataclass(frozen=True, kw_only=True)
class Space:
    """The space of a site's aggregate in bytes, None if ONTAP reported nothing.

    `others` are the other aggregates that volumes of its SVM are in.
    """

    capacity: SiteCapacity
    others: Sequence[AggregateSpace] = ()

    @property
    def physical_bytes(self) -> int | None:
        capacity = self.capacity
        if capacity.logical_bytes is None or capacity.saved_bytes is None:
            return None
        return capacity.logical_bytes - capacity.saved_bytes

    @property
    def saved_by_clones_bytes(self) -> int | None:
        """What FlexClones and snapshots save by sharing blocks with their parents."""
        capacity = self.capacity
        if capacity.saved_bytes is None or capacity.saved_within_bytes is None:
            return None
        return max(capacity.saved_bytes - capacity.saved_within_bytes, 0)

    @property
    def reduction(self) -> float | None:
        """Data reduction as a ratio: 3.4 means 3.4:1."""
        logical, physical = self.capacity.logical_bytes, self.physical_bytes
        return logical / physical if logical and physical else None

    @property
    def used_percent(self) -> int | None:
        capacity = self.capacity
        if not capacity.aggregate_size_bytes:
            return None
        return 100 * capacity.aggregate_used_bytes // capacity.aggregate_size_bytes


@dataclass(frozen=True, kw_only=True)
class Clones:
    """The clones of one template or team, including the trash, and their space."""

    name: str
    number: int
    ready: int
    failed: int
    unique_bytes: int


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue's jobs. `waiting` counts those that are due, the oldest since `since`."""

    name: str
    running: int
    waiting: int
    since: dt.datetime | None
    is_served: bool

    @property
    def lacks_worker(self) -> bool:
        return bool(self.waiting) and not self.is_served


@dataclass(frozen=True, kw_only=True)
class PerforceWait:
    """A server's steps that wait for a slot or have one, and the p95 wait of 24 h."""

    server: str
    waiting: int
    running: int
    p95_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The overview at a moment; each part is read once, when it is needed."""

    span: Span
    now: dt.datetime

    @cached_property
    def failures(self) -> list[Operation]:
        return list(_failures(since=self.now - WEEK)[:FAILURES_SHOWN])

    @cached_property
    def workers(self) -> list[AliveWorker]:
        return alive_workers()

    @cached_property
    def queues(self) -> list[Queue]:
        return queues(self.workers)

    @cached_property
    def perforce(self) -> list[PerforceWait]:
        return perforce_waits(since=self.now - dt.timedelta(days=1))

    @property
    def spaces(self) -> list[Space]:
        return [
            Space(capacity=site.capacity, others=self._others[site.site.pk])
            for site in self._sites
            if site.capacity.pk is not None
        ]

    @cached_property
    def troubles(self) -> list[Trouble]:
        return troubles(
            sites=self._sites,
            tallies=self._tallies,
            workers=self.workers,
            failed_today=self.weeks.failed_today,
        )

    @cached_property
    def forecasts(self) -> list[Forecast]:
        trends = limit_trends(self._tallies)
        of_sites = nearest_forecasts(
            self._sites,
            self._days,
            of_others=self._of_others,
            of_templates=trends,
            most=NEAREST_LIMITS,
        )
        # People often reach theirs.
        of_teams = nearest_quotas(
            team_limits(self._tallies), trends=trends, most=NEAREST_QUOTAS
        )
        return [*of_sites, *of_teams]

    @cached_property
    def weeks(self) -> TwoWeeks:
        return two_weeks(now=self.now, days=self._days)

    @cached_property
    def saved(self) -> Lately:
        return saved_lately(self._tallies, now=self.now)

    @cached_property
    def by_template(self) -> list[Clones]:
        named = Template.objects.order_by().values_list("pk", "name")
        return _clones(self._tallies.by_template, named)

    @cached_property
    def by_team(self) -> list[Clones]:
        named = Team.objects.order_by().values_list("pk", "name")
        return _clones(self._tallies.by_team, [(None, ""), *named])

    @cached_property
    def charts(self) -> list[Chart]:
        return charts_of(
            self.span,
            sites=list(Site.objects.order_by("name")),
            days=self._days,
            of_others={
                other: self._of_others.get((other.site_id, other.name), [])
                for of_site in self._others.values()
                for other in of_site
            },
        )

    @property
    def clones(self) -> int:
        return sum(tally.clones for tally in self._tallies.by_template.values())

    @property
    def ready(self) -> int:
        return sum(tally.ready for tally in self._tallies.by_template.values())

    @property
    def waiting(self) -> int:
        return sum(queue.waiting for queue in self.queues)

    @property
    def unserved(self) -> list[Queue]:
        """Queues with waiting jobs and no worker."""
        return [queue for queue in self.queues if queue.lacks_worker]

    @property
    def waiting_since(self) -> dt.datetime | None:
        return min((q.since for q in self.queues if q.since is not None), default=None)

    @property
    def perforce_p95_seconds(self) -> float | None:
        """The wait of the slowest server."""
        known = (wait.p95_seconds for wait in self.perforce)
        return max((p95 for p95 in known if p95 is not None), default=None)

    @cached_property
    def _tallies(self) -> Tallies:
        return Tallies()

    @cached_property
    def _sites(self) -> list[SiteLimits]:
        return limits_of_sites(self._tallies)

    @cached_property
    def _since(self) -> dt.date:
        """The first day that a chart or a forecast needs."""
        first = min(self.span.earliest, self.now - SAMPLED)
        return first.astimezone(dt.UTC).date()

    @cached_property
    def _days(self) -> dict[int, list[CapacityDay]]:
        return capacity_days(since=self._since)

    @cached_property
    def _others(self) -> dict[int, list[AggregateSpace]]:
        return _other_spaces()

    @cached_property
    def _of_others(self) -> dict[tuple[int, str], list[AggregateDay]]:
        return other_aggregate_days(since=self._since)


def installation(user: User, span: Span) -> Installation:
    """Return the overview with charts of the period.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    return Installation(span=span, now=timezone.now())


def _other_spaces() -> dict[int, list[AggregateSpace]]:
    """Return the aggregates with volumes besides each site's own, by the site's id."""
    others = defaultdict[int, list[AggregateSpace]](list)
    rows = AggregateSpace.objects.exclude(name=F("site__aggregate"))
    for space in rows.filter(provisioned_bytes__gt=0).order_by("name"):
        others[space.site_id].append(space)
    return others


def _clones(
    tallies: Mapping[Any, Tally], named: Iterable[tuple[int | None, str]]
) -> list[Clones]:
    """Return totals per name, largest first, omitting empty ones."""
    rows = [
        Clones(
            name=name,
            number=tally.clones,
            ready=tally.ready,
            failed=tally.failed,
            unique_bytes=tally.taken_bytes,
        )
        for key, name in named
        for tally in filter(None, [tallies.get(key)])
    ]
    return sorted(rows, key=lambda row: (-row.number, row.name))


def _failures(*, since: dt.datetime) -> QuerySet[Any]:
    """Return failed operations, newest first."""
    return (
        Operation.objects.filter(state=Operation.State.FAILED, ended_at__gte=since)
        .select_related("subject__workspace", "subject__template", "requested_by")
        .only(
            *("kind", "state", "created_at", "ended_at", "requested_by__username"),
            *(
                "status_code",
                "status_message",
                "subject__kind",
                "subject__workspace__name",
                "subject__template__name",
            ),
        )
        .order_by("-ended_at")
    )


def queues(workers: list[AliveWorker]) -> list[Queue]:
    """Return the queues with running or waiting jobs."""
    due = Q(status="todo") & (Q(scheduled_at=None) | Q(scheduled_at__lte=Now()))
    rows = (
        ProcrastinateJob.objects.filter(status__in=("todo", "doing"))
        .order_by()
        .values(name=F("queue_name"))
        .annotate(
            running=Count("pk", filter=Q(status="doing"), distinct=True),
            waiting=Count("pk", filter=due, distinct=True),
            since=Min("procrastinateevent__at", filter=due),
        )
        .order_by("name")
    )
    return [
        Queue(**row, is_served=any(worker.serves(row["name"]) for worker in workers))
        for row in rows
    ]


def perforce_waits(*, since: dt.datetime) -> list[PerforceWait]:
    """Return how many wait and run at each server, and its p95 wait since a time."""
    by_server = Step.objects.order_by().values_list("perforce_server__name")
    now = {
        server: (waiting, running)
        for server, waiting, running in by_server.filter(
            slots.WAITS | slots.HAS_SLOT
        ).annotate(
            waiting=Count("pk", filter=slots.WAITS),
            running=Count("pk", filter=slots.HAS_SLOT),
        )
    }
    # A step that paused for a retry was queued again after its first start.
    waited = ExpressionWrapper(
        F("first_started_at") - F("queued_at"), output_field=DurationField()
    )
    begun = by_server.filter(
        perforce_use__in=slots.NEEDS_SLOT,
        first_started_at__gte=since,
        queued_at__lte=F("first_started_at"),
    )
    p95 = dict(begun.annotate(p95=Percentile(waited, share=0.95)))
    return [
        PerforceWait(
            server=server,
            waiting=now.get(server, (0, 0))[0],
            running=now.get(server, (0, 0))[1],
            p95_seconds=p95[server].total_seconds() if server in p95 else None,
        )
        for server in sorted({*now, *p95})
    ]
