"""Plans, rounds and counts of probes, and their statistics by week and hour."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, F, FloatField, Max, Min, Q, QuerySet
from django.db.models.functions import TruncWeek

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.insight.models import Process, ProcessReading
from provisioner.lib.percentiles import Percentile
from provisioner.lib.periods import period_of
from provisioner.lib.rows import with_words
from provisioner.probes.models import (
    Moment,
    ProbePlan,
    ProbeRun,
    ProbeTime,
    ProcessCount,
)
from provisioner.sites.models import PerforceServer

LAPSE = "First to last"
"""Stands for all commands of a round together, where a command is named."""

WEEKS_SHOWN = 8
FRESH_FOR = dt.timedelta(minutes=3)


def plan_of(server: PerforceServer) -> ProbePlan:
    """Return the plan of a server; the usual one, switched on, if it has none yet."""
    plan = ProbePlan.objects.filter(server=server).first()
    return plan or ProbePlan(server=server)


def plans() -> list[ProbePlan]:
    """Return the plan of each server at a site, by name of the server."""
    servers = PerforceServer.objects.filter(site__isnull=False).distinct()
    found = servers.select_related("probe_plan", "slot_budget", "load").order_by("name")
    return [
        getattr(server, "probe_plan", None) or ProbePlan(server=server)
        for server in found
    ]


def times_matching(
    reader: User,
    /,
    *,
    text: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    failed: bool | str = False,
    **criteria: Any,
) -> QuerySet[ProbeTime]:
    """Return how long commands took, to administrators alone; `failed`: errors alone.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    times = with_words(ProbeTime.objects.all(), text, "command", "error")
    if since is not None:
        times = times.filter(run__at__gte=since)
    if until is not None:
        times = times.filter(run__at__lt=until)
    if failed:
        times = times.exclude(error="")
    return times.filter(**criteria).select_related("run__server")


def running_now(*, at: dt.datetime) -> dict[int, int]:
    """Return how many commands run at each server whose processes were just read.

    By the id of the server. Idle connections and the server's own do not count.
    """
    read = ProcessReading.objects.filter(trouble="", read_at__gte=at - FRESH_FOR)
    counts = dict.fromkeys(read.values_list("server_id", flat=True), 0)
    working = Process.objects.exclude(state=Process.State.IDLE)
    for process in working.filter(server__in=counts):
        counts[process.server_id] += not process.is_of_the_server
    return counts


@dataclass(frozen=True, kw_only=True)
class Week:
    """What a server's rounds took in a week, in seconds; None: nothing was measured.

    `command` is one, or LAPSE. `gaps` are rounds that there were not, and `failed`
    those that ended with an error.
    """

    server_id: int
    server: str
    begin: dt.date
    command: str
    rounds: int
    gaps: int
    failed: int
    average: float | None
    median: float | None
    maximum: float | None
    minimum: float | None


def weeks_of(servers: Iterable[PerforceServer], *, now: dt.datetime) -> list[Week]:
    """Return the statistics of the last weeks (in UTC, from Monday), newest first.

    Of each, all commands together first, then each by name. Two queries.
    """
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    weeks_ago = dt.timedelta(weeks=WEEKS_SHOWN - 1)
    since = today - dt.timedelta(days=today.weekday()) - weeks_ago
    week = TruncWeek("at", tzinfo=dt.UTC)
    runs = ProbeRun.objects.filter(server__in=servers, at__gte=since).order_by()
    lapses = (
        runs.annotate(begin=week)
        .values("server_id", "begin", name=F("server__name"))
        .annotate(
            gaps=Count("pk", filter=~Q(gap="")),
            failed=Count("pk", filter=Q(gap="", lapse_seconds=None)),
            **_statistics("lapse_seconds"),
        )
    )
    times = ProbeTime.objects.filter(run__server__in=servers, run__at__gte=since)
    commands = (
        times.order_by()
        .annotate(begin=TruncWeek("run__at", tzinfo=dt.UTC))
        .values("begin", "command", server_id=F("run__server_id"))
        .annotate(
            name=F("run__server__name"),
            failed=Count("pk", filter=~Q(error="")),
            **_statistics("seconds"),
        )
    )
    gaps = {(row["server_id"], row["begin"]): row["gaps"] for row in lapses}
    found = [_week(row, command=LAPSE, gaps=row["gaps"]) for row in lapses]
    for row in commands:
        lost = gaps.get((row["server_id"], row["begin"]), 0)
        found.append(_week(row, command=row["command"], gaps=lost))
    return sorted(
        found,
        key=lambda w: (-w.begin.toordinal(), w.server, w.command != LAPSE, w.command),
    )


def _statistics(field: str) -> dict[str, Any]:
    median = Percentile(F(field), share=0.5, output_field=FloatField())
    return {
        "rounds": Count(field),
        "average": Avg(field),
        "median": median,
        "maximum": Max(field),
        "minimum": Min(field),
    }


def _week(row: dict[str, Any], *, command: str, gaps: int) -> Week:
    return Week(
        server_id=row["server_id"],
        server=row["name"],
        begin=row["begin"].date(),
        command=command,
        gaps=gaps,
        **{
            name: row[name]
            for name in (
                *("rounds", "failed", "average", "median", "maximum", "minimum"),
            )
        },
    )


def lapses_by_hour(
    servers: Sequence[PerforceServer], *, since: dt.datetime
) -> QuerySet[ProbeRun, dict[str, Any]]:
    """Return median, maximum, rounds and gaps of each hour with a round or a gap."""
    median = Percentile(F("lapse_seconds"), share=0.5, output_field=FloatField())
    return (
        ProbeRun.objects.filter(server__in=servers, at__gte=since)
        .annotate(hour=period_of("at", by_hour=True))
        .values("server_id", "hour")
        .annotate(
            median=median,
            maximum=Max("lapse_seconds"),
            rounds=Count("lapse_seconds"),
            gaps=Count("pk", filter=~Q(gap="")),
        )
        .order_by("server_id", "hour")
    )


def counts_since(
    servers: Sequence[PerforceServer], *, since: dt.datetime
) -> dict[int, list[tuple[dt.datetime, int]]]:
    """Return when how many commands ran, oldest first, by the id of the server."""
    rows = ProcessCount.objects.filter(server__in=servers, at__gte=since)
    found: dict[int, list[tuple[dt.datetime, int]]] = {}
    listed = rows.order_by("at").values_list("server_id", "at", "processes")
    for server_id, at, processes in listed:
        found.setdefault(server_id, []).append((at, processes))
    return found


def moments_visible_to(user: User) -> QuerySet[Moment]:
    """Return all moments to administrators, none to others."""
    moments = Moment.objects.select_related("server", "created_by")
    return moments if permissions.can_administer(user) else moments.none()
