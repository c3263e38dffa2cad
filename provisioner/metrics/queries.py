"""Every figure, read at the time of a scrape. No remote call."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import Count, Min, Q, Sum
from django.db.models.functions import Coalesce
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from provisioner import __version__
from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.dashboard.queries import perforce_waits, queues
from provisioner.drift.models import DriftCheck, Finding
from provisioner.engine.models import Operation, SlotBudget, Step
from provisioner.engine.workers import alive_workers
from provisioner.lib import clocks
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.tallies import Tallies
from provisioner.mirrors.models import Mirror
from provisioner.pools.models import Pool
from provisioner.probes.queries import last_runs
from provisioner.sandboxes.models import HOST_NOT_ASKED, Sandbox
from provisioner.sites.models import AggregateSpace, PerforceServer, Site, SiteCapacity
from provisioner.storage.models import FillingVolume
from provisioner.workspaces.models import LEASED, Workspace
from provisioner.workspaces.ready_times import outcomes_since, waits_between

MINUTES = dt.timedelta(minutes=5)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)

Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values with their labels."""


class Figures(Collector):
    """All figures for an administrator. Raises: NotAllowed."""

    def __init__(self, *, by: User) -> None:
        permissions.require(permissions.can_administer(by))

    def describe(self) -> list[Metric]:
        """Keep the registry from reading everything a first time."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = clocks.database_now()
        yield InfoMetricFamily("cloneyard", "The release.", {"version": __version__})
        yield from _of_operations(now)
        yield from _of_queues(now)
        yield from _of_perforce(now)
        yield from _of_workspaces(now)
        yield from _of_sites(now)
        yield from _of_trouble(now)


def _gauge(name: str, says: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = GaugeMetricFamily(f"cloneyard_{name}", says, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family


def _age(moment: dt.datetime | None, now: dt.datetime) -> float:
    """Return the seconds since a moment that the query has required to be known."""
    assert moment is not None
    return max((now - moment).total_seconds(), 0.0)


def _of_operations(now: dt.datetime) -> Iterator[Metric]:
    running = Operation.objects.filter(state=Operation.State.RUNNING).order_by()
    yield _gauge(
        "operations_running",
        "Operations under way.",
        ("kind",),
        (
            ((kind,), number)
            for kind, number in running.values_list("kind").annotate(Count("pk"))
        ),
    )
    ended = Operation.objects.filter(ended_at__gte=now - HOUR).order_by()
    yield _gauge(
        "operations_ended_1h",
        "Operations that ended in the last hour, by how they ended.",
        ("kind", "state"),
        (
            ((kind, state), number)
            for kind, state, number in ended.values_list("kind", "state").annotate(
                Count("pk")
            )
        ),
    )
    [lately] = waits_between((now - HOUR, now))
    yield _gauge(
        "workspaces_made_1h",
        "Requested workspaces that became ready in the last hour.",
        (),
        [((), lately.number)],
    )
    shares = (("0.5", lately.p50_seconds), ("0.95", lately.p95_seconds))
    yield _gauge(
        "request_to_ready_seconds",
        "Time from request to ready in the last hour; no sample if none was made.",
        ("quantile",),
        (((share,), seconds) for share, seconds in shares if seconds is not None),
    )
    objective = settings.READY_OBJECTIVE_SECONDS
    outcomes = outcomes_since(now - MINUTES, objective_seconds=objective)
    yield _gauge(
        "requests_settled_5m",
        "Requests for workspaces that ended in the last five minutes: ready within "
        "the objective, ready later, or failed.",
        ("outcome",),
        (((outcome,), number) for outcome, number in outcomes.items()),
    )
    yield _gauge(
        "ready_objective_seconds",
        "Within which time a requested workspace should be ready.",
        (),
        [((), objective)],
    )
    oldest = Step.objects.order_by().values_list("state")
    in_flight = (Step.State.QUEUED, Step.State.RUNNING, Step.State.RETRYING)
    yield _gauge(
        "oldest_step_seconds",
        "Age of the oldest step in flight, since it was queued, by its state.",
        ("state",),
        (
            ((state,), _age(since, now))
            for state, since in oldest.filter(
                state__in=in_flight, queued_at__isnull=False
            ).annotate(Min("queued_at"))
        ),
    )


def _of_queues(now: dt.datetime) -> Iterator[Metric]:
    workers = alive_workers()
    found = queues(workers)
    yield _gauge(
        "queue_jobs",
        "Jobs by queue: waiting counts those that are due.",
        ("queue", "state"),
        (
            ((queue.name, state), number)
            for queue in found
            for state, number in (
                ("waiting", queue.waiting),
                ("running", queue.running),
            )
        ),
    )
    yield _gauge(
        "queue_oldest_seconds",
        "For how long the oldest due job has waited.",
        ("queue",),
        (((q.name,), _age(q.since, now)) for q in found if q.since is not None),
    )
    yield _gauge(
        "queue_unserved",
        "1 if jobs wait in the queue and no worker serves it.",
        ("queue",),
        (((queue.name,), float(queue.lacks_worker)) for queue in found),
    )
    releases = Counter(worker.release for worker in workers)
    yield _gauge(
        "worker_releases",
        "Workers that sent a heartbeat lately, by their release.",
        ("release",),
        (((release,), float(number)) for release, number in releases.items()),
    )
    yield _gauge(
        "workers",
        "Workers that sent a heartbeat lately. One whose clock is off takes no jobs.",
        ("clock",),
        (
            ((clock,), sum(bool(each.clock_trouble) == is_off for each in workers))
            for clock, is_off in (("right", False), ("off", True))
        ),
    )


def _of_perforce(now: dt.datetime) -> Iterator[Metric]:
    waits = perforce_waits(since=now - DAY)
    yield _gauge(
        "perforce_steps",
        "Steps that wait for a slot at a Perforce server, or have one.",
        ("server", "state"),
        (
            ((wait.server, state), number)
            for wait in waits
            for state, number in (("waiting", wait.waiting), ("running", wait.running))
        ),
    )
    yield _gauge(
        "perforce_slot_wait_p95_seconds",
        "How long steps waited for a slot in the last 24 hours, 95th percentile.",
        ("server",),
        (((w.server,), w.p95_seconds) for w in waits if w.p95_seconds is not None),
    )
    paused = SlotBudget.objects.order_by().values_list("server__name")
    yield _gauge(
        "perforce_paused",
        "1 if an administrator has paused the Perforce server.",
        ("server",),
        (((name,), 1) for (name,) in paused.filter(paused_at__isnull=False)),
    )
    servers = {each.pk: each for each in PerforceServer.objects.all()}
    rounds = {servers[pk].name: run for pk, run in last_runs(servers.values()).items()}
    yield _gauge(
        "probe_seconds",
        "How long the last round of the server's probe took. Without one, no sample.",
        ("server",),
        (
            ((server,), run.lapse_seconds)
            for server, run in rounds.items()
            if run.lapse_seconds is not None
        ),
    )
    yield _gauge(
        "probe_failing",
        "1 if the last round of the probe had an error, or there was none.",
        ("server",),
        (((name,), run.lapse_seconds is None) for name, run in rounds.items()),
    )


def _of_workspaces(now: dt.datetime) -> Iterator[Metric]:
    # All in one look at tens of thousands, with as little as possible done for each.
    within = {"1d": now + DAY, "7d": now + 7 * DAY}
    names = dict(Site.objects.order_by().values_list("pk", "name"))
    counted = (
        Workspace.objects.there()
        .order_by()
        .values("site", "state")
        .annotate(
            number=Count("pk"),
            size=Coalesce(Sum("unique_bytes"), 0),
            pooled=Count("pk", filter=Q(is_pooled=True)),
            leased=Count("expires_at", filter=Q(is_pooled=False)),
            **{
                name: Count("pk", filter=Q(is_pooled=False, expires_at__lt=end))
                for name, end in within.items()
            },
        )
    )
    rows = [{**row, "site": names[row["site"]]} for row in counted]
    yield _gauge(
        "workspaces",
        "Workspaces by state, members of warm pools and the trash included.",
        ("site", "state"),
        (((row["site"], row["state"]), row["number"]) for row in rows),
    )
    yield _gauge(
        "workspaces_unique_bytes",
        "What only these clones hold, as last measured.",
        ("site", "state"),
        (((row["site"], row["state"]), row["size"]) for row in rows),
    )
    ending = Counter[tuple[str, str]]()
    for row in rows:
        if row["state"] in LEASED and row["leased"]:
            ending.update({(row["site"], name): row[name] for name in within})
    yield _gauge(
        "leases_ending",
        "Workspaces whose lease ends within this time or has ended.",
        ("site", "within"),
        ending.items(),
    )
    yield _gauge(
        "pool_members",
        "Members of warm pools by state.",
        ("site", "state"),
        (((row["site"], row["state"]), row["pooled"]) for row in rows if row["pooled"]),
    )
    pools = Pool.objects.order_by().values_list("site__name")
    yield _gauge(
        "pools_failing",
        "Warm pools whose last member could not be made.",
        ("site",),
        (
            ((site,), number)
            for site, number in pools.annotate(
                number=Count("pk", filter=Q(failures__gt=0))
            )
        ),
    )


def _of_sites(now: dt.datetime) -> Iterator[Metric]:
    measured = SiteCapacity.objects.filter(measured_at__isnull=False)
    capacities = list(measured.select_related("site").order_by("site__name"))
    yield _gauge(
        "aggregate_bytes",
        "Size and used space of a site's aggregate; logical is before data reduction.",
        ("site", "part"),
        (
            ((row.site.name, part), size)
            for row in capacities
            for part, size in (
                ("size", row.aggregate_size_bytes),
                ("used", row.aggregate_used_bytes),
                ("available", row.aggregate_available_bytes),
                ("provisioned", row.provisioned_bytes),
                ("logical", row.logical_bytes),
                ("saved", row.saved_bytes),
            )
            if size is not None
        ),
    )
    spaces = AggregateSpace.objects.select_related("site")
    yield _gauge(
        "svm_aggregate_bytes",
        "Size and used space of each aggregate that a site's SVM may use.",
        ("site", "aggregate", "part"),
        (
            ((row.site.name, row.name, part), size)
            for row in spaces.order_by("site__name", "name")
            for part, size in (
                ("size", row.size_bytes),
                ("used", row.used_bytes),
                ("available", row.available_bytes),
                ("provisioned", row.provisioned_bytes),
            )
        ),
    )
    yield _gauge(
        "site_measured_seconds",
        "How long ago the space of a site was measured.",
        ("site",),
        (((row.site.name,), _age(row.measured_at, now)) for row in capacities),
    )
    limits = [
        (site.site.name, limit)
        for site in limits_of_sites(Tallies())
        for limit in site.limits
    ]
    nearest: dict[tuple[str, str], float] = {}
    for site, limit in limits:
        if limit.percent is not None:
            key = (site, limit.code)
            nearest[key] = max(nearest.get(key, 0.0), limit.percent / 100)
    yield _gauge(
        "limit_used_ratio",
        "The part of a limit that is used: of the template nearest to it, where each "
        "template has its own.",
        ("site", "limit"),
        nearest.items(),
    )


def _of_trouble(now: dt.datetime) -> Iterator[Metric]:
    findings = Finding.objects.filter(resolved_at=None).order_by()
    yield _gauge(
        "drift_findings",
        "Open findings of the drift checks.",
        ("site", "kind"),
        (
            ((site, kind), number)
            for site, kind, number in findings.values_list(
                "site__name", "kind"
            ).annotate(Count("pk"))
        ),
    )
    checks = DriftCheck.objects.filter(checked_at__isnull=False).order_by()
    yield _gauge(
        "drift_checked_seconds",
        "How long ago a drift check last saw everything.",
        ("site", "system"),
        (
            ((site, system), _age(at, now))
            for site, system, at in checks.values_list(
                "site__name", "system", "checked_at"
            )
        ),
    )
    filling = FillingVolume.objects.order_by().values_list("level")
    yield _gauge(
        "volumes_filling",
        "Volumes of workspaces, templates, mirrors and copies that passed this level, "
        "in percent.",
        ("level",),
        (((str(level),), number) for level, number in filling.annotate(Count("pk"))),
    )
    mirrors = Mirror.objects.order_by().values_list("site__name", "state")
    yield _gauge(
        "mirrors",
        "Mirrors of templates by state.",
        ("site", "state"),
        (
            ((site, state), number)
            for site, state, number in mirrors.annotate(Count("pk"))
        ),
    )
    yield from _of_sandboxes()
    failing = SiteCapacity.objects.filter(failing_since__isnull=False)
    yield _gauge(
        "site_failing_seconds",
        "For how long ONTAP has not answered a site's measurements.",
        ("site",),
        (
            ((site,), _age(since, now))
            for site, since in failing.order_by().values_list(
                "site__name", "failing_since"
            )
        ),
    )


def _of_sandboxes() -> Iterator[Metric]:
    there = Sandbox.objects.order_by().values_list("host__name", "state")
    yield _gauge(
        "sandboxes",
        "Sandboxes of Perforce servers by state; stopped ones wait for a new start.",
        ("host", "state"),
        (
            ((host, state), number)
            for host, state, number in there.annotate(Count("pk"))
        ),
    )
    left = Sandbox.with_retired.filter(
        state=Sandbox.State.RETIRED, status_code=HOST_NOT_ASKED
    )
    yield _gauge(
        "sandboxes_left_at_host",
        "Sandboxes that were retired without their host, which was not back since.",
        ("host",),
        (
            ((host,), number)
            for host, number in left.order_by()
            .values_list("host__name")
            .annotate(Count("pk"))
        ),
    )
