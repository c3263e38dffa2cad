"""Plans, rounds and counts of probes, and their statistics by week and hour."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from django.db.models import (
    Avg,
    BigIntegerField,
    Count,
    F,
    FloatField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Cast, Extract, TruncWeek

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
    ProbeWeek,
    ProcessCount,
    ReportMail,
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
    failed: bool | None = None,
    **criteria: Any,
) -> QuerySet[ProbeTime]:
    """Return how long commands took, only to administrators.

    `failed`: only errors, or only what was measured; None: both.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    times = with_words(ProbeTime.objects.all(), text, "command", "error")
    if since is not None:
        times = times.filter(run__at__gte=since)
    if until is not None:
        times = times.filter(run__at__lt=until)
    if failed is not None:
        times = times.exclude(error="") if failed else times.filter(error="")
    return times.filter(**criteria).select_related("run__server")


class Round(StrEnum):
    """What became of a round."""

    MEASURED = "measured"
    FAILED = "failed"
    GAP = "gap"


_BECAME = {
    Round.MEASURED: Q(lapse_seconds__isnull=False),
    Round.FAILED: Q(gap="", lapse_seconds=None),
    Round.GAP: ~Q(gap=""),
}


def rounds_matching(
    reader: User,
    /,
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    outcome: str = "",
    **criteria: Any,
) -> QuerySet[ProbeRun]:
    """Return rounds and gaps, only to administrators; of one outcome if it is given.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    rounds = ProbeRun.objects.all()
    if since is not None:
        rounds = rounds.filter(at__gte=since)
    if until is not None:
        rounds = rounds.filter(at__lt=until)
    if outcome:
        rounds = rounds.filter(_BECAME[Round(outcome)])
    return rounds.filter(**criteria).select_related("server")


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


def last_runs(servers: Iterable[PerforceServer]) -> dict[int, ProbeRun]:
    """Return the newest round or gap of each server, by its id."""
    runs = ProbeRun.objects.filter(server=OuterRef("pk")).order_by("-at", "-pk")
    newest = PerforceServer.objects.filter(pk__in=[server.pk for server in servers])
    ids = newest.annotate(run=Subquery(runs.values("pk")[:1])).values("run")
    return {run.server_id: run for run in ProbeRun.objects.filter(pk__in=ids)}


def weeks_of(servers: Iterable[PerforceServer], *, now: dt.datetime) -> list[ProbeWeek]:
    """Return the statistics of the last weeks (in UTC, from Monday), newest first.

    Of each, all commands together first, then each by name. Weeks that are over come
    from what `keep_weeks` saved, the others from their rounds. Four queries.
    """
    servers = list(servers)
    since = monday_of(now) - dt.timedelta(weeks=WEEKS_SHOWN - 1)
    kept = ProbeWeek.objects.filter(server__in=servers, begin__gte=since.date())
    saved = list(kept.order_by())
    names = {server.pk: server.name for server in servers}
    known_until = _kept_until()
    if known_until is not None:
        since = max(since, known_until)
    found = [*saved, *_weeks_since(servers, since=since)]
    return sorted(
        found,
        key=lambda week: (
            -week.begin.toordinal(),
            names[week.server_id],
            week.command != LAPSE,
            week.command,
        ),
    )


def keep_weeks(*, now: dt.datetime) -> None:
    """Save the weeks that are over, and are not saved yet: no more rounds of theirs can
    come.

    Safe to repeat.
    """
    since, until = _kept_until(), monday_of(now)
    if since is None:
        first = ProbeRun.objects.order_by("at").first()
        since = monday_of(first.at) if first is not None else until
    servers = PerforceServer.objects.all()
    weeks = _weeks_since(servers, since=since, until=until)
    ProbeWeek.objects.bulk_create(weeks, ignore_conflicts=True)


def monday_of(moment: dt.datetime) -> dt.datetime:
    """Return when the week of a moment began, in UTC."""
    day = moment.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - dt.timedelta(days=day.weekday())


def _kept_until() -> dt.datetime | None:
    newest = ProbeWeek.objects.aggregate(begin=Max("begin"))["begin"]
    if newest is None:
        return None
    day = newest + dt.timedelta(weeks=1)
    return dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)


def _weeks_since(
    servers: Iterable[PerforceServer],
    *,
    since: dt.datetime,
    until: dt.datetime | None = None,
) -> list[ProbeWeek]:
    """Return the statistics of rounds, not saved. Two queries."""
    week = TruncWeek("at", tzinfo=dt.UTC)
    by_id = {server.pk: server for server in servers}
    runs = ProbeRun.objects.filter(server__in=by_id, at__gte=since).order_by()
    times = ProbeTime.objects.filter(run__server__in=by_id, run__at__gte=since)
    if until is not None:
        runs, times = runs.filter(at__lt=until), times.filter(run__at__lt=until)
    lapses = list(
        runs.annotate(begin=week)
        .values("server_id", "begin")
        .annotate(
            first=Min("pk"),
            gaps=Count("pk", filter=~Q(gap="")),
            failed=Count("pk", filter=_BECAME[Round.FAILED]),
            **_statistics("lapse_seconds"),
        )
    )
    # Of a year of times a week is found by its first round, and not read through.
    firsts = [row.pop("first") for row in lapses]
    commands = (
        times.filter(run__gte=min(firsts, default=0))
        .order_by()
        .annotate(begin=TruncWeek("run__at", tzinfo=dt.UTC))
        .values("begin", "command", server_id=F("run__server_id"))
        .annotate(failed=Count("pk", filter=~Q(error="")), **_statistics("seconds"))
    )
    gaps = {(row["server_id"], row["begin"]): row["gaps"] for row in lapses}
    rows = [{**row, "command": LAPSE} for row in lapses]
    for row in commands:
        rows.append({**row, "gaps": gaps.get((row["server_id"], row["begin"]), 0)})
    for row in rows:
        row["server"] = by_id[row.pop("server_id")]
        row["begin"] = row["begin"].date()
    return [ProbeWeek(**row) for row in rows]


def _statistics(field: str) -> dict[str, Any]:
    median = Percentile(F(field), share=0.5, output_field=FloatField())
    return {
        "rounds": Count(field),
        "average": Avg(field),
        "median": median,
        "maximum": Max(field),
        "minimum": Min(field),
    }


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
) -> dict[int, list[tuple[int, int]]]:
    """Return when how many commands ran, oldest first, by the id of the server.

    When in seconds: of thousands of them few are shown.
    """
    rows = ProcessCount.objects.filter(server__in=servers, at__gte=since)
    seconds = Cast(Extract("at", "epoch"), BigIntegerField())
    found = defaultdict[int, list[tuple[int, int]]](list)
    listed = rows.order_by("at").values_list("server_id", seconds, "processes")
    for server_id, at, processes in listed:
        found[server_id].append((at, processes))
    return found


def report_mails_visible_to(user: User) -> QuerySet[ReportMail]:
    """Return all mails with reports to administrators, none to others."""
    mails = ReportMail.objects.select_related("server", "person", "requested_by")
    return mails if permissions.can_administer(user) else mails.none()


def moments_visible_to(user: User) -> QuerySet[Moment]:
    """Return all moments to administrators, none to others."""
    moments = Moment.objects.select_related("server", "created_by")
    return moments if permissions.can_administer(user) else moments.none()
