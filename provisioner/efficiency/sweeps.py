"""Each minute: deduplicate by plan. Each hour: measure what storage saves.

A run is a row before ONTAP is asked to start it, and ONTAP is asked what its scanner
does before each decision. So a killed worker or a lost answer changes nothing: the next
check goes on from the rows, and starts nothing twice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

import structlog
from django.db.models import Exists, Max, OuterRef, Q
from procrastinate.contrib.django import app

from provisioner.efficiency.actions import MEASURE_REDUCTION, queue_measurement
from provisioner.efficiency.models import (
    DedupePlan,
    DedupeRun,
    DedupeVolume,
    ReductionDay,
)
from provisioner.efficiency.queries import (
    OPEN,
    covered_by,
    open_runs,
    plan_of,
    what_keeps_busy,
)
from provisioner.efficiency.samples import Seen, keep_days, note_volumes
from provisioner.efficiency.states import move
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import STORAGE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, PermanentGatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import EfficiencyPolicy, VolumeEfficiency
from provisioner.lib import clocks, schedules
from provisioner.sites.models import Site

# ONTAP runs eight for each node and lets the rest wait: other tenants want some.
# Source: "Run efficiency operations manually" of the ONTAP documentation.
AT_ONCE = 2
POLICY = "cloneyard-dedupe"

log = structlog.get_logger(__name__)


@app.periodic(cron="53 * * * *")
@app.task(name="sweep_reduction", queue="sweeps", queueing_lock="sweep_reduction")
def sweep_reduction(timestamp: int) -> None:
    """Queue a measurement of every site."""
    for site in Site.objects.all():
        queue_measurement(site)


@app.task(name=MEASURE_REDUCTION, queue=STORAGE)
def measure_reduction(site_id: int) -> None:
    """Measure a site; what was measured before stays if it fails."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        return
    try:
        measure(site)
    except GatewayError as error:
        log.warning("reduction_not_measured", site=site.name, **error.log_context())


@app.periodic(cron="* * * * *")
@app.task(name="sweep_dedupe", queue="sweeps", queueing_lock="sweep_dedupe")
def sweep_deduplication(timestamp: int) -> None:
    """Queue a check of each site whose window is open, or where something runs."""
    now = clocks.database_now()
    runs = DedupeRun.objects.filter(volume__site=OuterRef("site"), state__in=OPEN)
    for plan in DedupePlan.objects.filter(Q(is_on=True) | Q(Exists(runs))):
        has_window = plan.is_on and not plan.ontap_policy and plan.window_at(now)
        if has_window or open_runs(plan.site).exists():
            name = f"deduplicate_site.{plan.site_id}"
            job = deduplicate_site.configure(queueing_lock=name, lock=name)
            defer_once(job, site_id=plan.site_id)


@app.task(name="deduplicate_site", queue=STORAGE)
def deduplicate_site(site_id: int) -> None:
    """Follow, stop and start the runs of a site."""
    plan = DedupePlan.objects.filter(site=site_id).select_related("site").first()
    if plan is None:
        return
    try:
        status = deduplicate(plan)
    except GatewayError as error:
        log.warning("site_not_deduplicated", site=plan.site.name, **error.log_context())
        status = f"{error.sentence} Cloneyard tries again in a minute."
    DedupePlan.objects.filter(pk=plan.pk).update(
        status=status, checked_at=clocks.database_now()
    )


def measure(site: Site) -> None:
    """Save what the site's volumes hold and take, and see to its policy in ONTAP.

    Safe to repeat. Raises: GatewayError.
    """
    ontap = registry.ontap(site)
    seen = _seen_by(ontap)
    volumes = note_volumes(site, seen)
    plan = plan_of(site)
    if plan.pk:
        _arrange_policy(plan, ontap, seen, volumes)
        _note_runs_of_ontap(seen, volumes)
    keep_days(site, ontap=ontap, seen=seen, volumes=volumes)


def deduplicate(plan: DedupePlan) -> str:
    """Do what the plan says for this minute, and return that as a sentence.

    Raises: GatewayError (the next check goes on from the rows).
    """
    site, now = plan.site, clocks.database_now()
    ontap = registry.ontap(site)
    seen = _seen_by(ontap)
    volumes = note_volumes(site, seen)
    for run in open_runs(site):
        _follow(run, seen.get(run.volume.ontap_uuid))
    if obstacle := _obstacle(plan, now):
        for run in open_runs(site):
            _stop(run, ontap, why=obstacle)
        return obstacle
    window = plan.window_at(now)
    assert window is not None
    for run in open_runs(site).filter(state=DedupeRun.State.REQUESTED):
        _start(run, ontap)
    places = max(0, AT_ONCE - open_runs(site).count())
    for volume in _due(plan, window, seen, volumes)[:places]:
        _start(_request(volume, seen[volume.ontap_uuid], window), ontap)
    running = open_runs(site).count()
    if running:
        are = "volume is" if running == 1 else "volumes are"
        return f"{running} {are} being deduplicated, at most {AT_ONCE} at a time."
    return "All volumes of the plan were deduplicated in this window."


def _seen_by(ontap: OntapGateway) -> Seen:
    return {each.uuid: each for each in ontap.list_volume_efficiency()}


def _obstacle(plan: DedupePlan, now: dt.datetime) -> str:
    """Return why nothing is deduplicated now, "" if something may be."""
    if not plan.is_on:
        return "The plan is switched off."
    if plan.ontap_policy:
        return f"The policy {plan.ontap_policy} of ONTAP runs the plan."
    if plan.window_at(now) is None:
        begin = schedules.next_time(plan.cron, after=now)
        return f"The window has ended. The next begins on {begin:%-d %b at %H:%M} UTC."
    if plan.waits_for_quiet and (busy := what_keeps_busy(plan.site)):
        return f"Waiting for a quiet time: {busy}"
    return ""


# --- runs


def _request(
    volume: DedupeVolume, seen: VolumeEfficiency, window: dt.datetime
) -> DedupeRun:
    return DedupeRun.objects.create(
        volume=volume,
        window_at=window,
        previous_began_at=seen.last_began_at,
        saved_before_bytes=seen.deduplicated_bytes,
        took_before_bytes=seen.physical_bytes,
    )


def _start(run: DedupeRun, ontap: OntapGateway) -> None:
    """Ask ONTAP to start a run that was requested; a refusal is its end.

    The first run of a volume reads all blocks, later ones those written since.
    """
    done = DedupeRun.objects.filter(volume=run.volume, state=DedupeRun.State.DONE)
    try:
        ontap.start_deduplication(run.volume.ontap_uuid, scans_all=not done.exists())
    except PermanentGatewayError as error:
        move(run, DedupeRun.State.FAILED, message=error.sentence)
    else:
        move(run, DedupeRun.State.RUNNING)


def _follow(run: DedupeRun, seen: VolumeEfficiency | None) -> None:
    """Record how far a run is, by what ONTAP says of its volume."""
    if seen is None:
        move(run, DedupeRun.State.FAILED, message="The volume is gone.")
    elif seen.is_scanning:
        if run.state == DedupeRun.State.REQUESTED:
            move(run, DedupeRun.State.RUNNING)
        DedupeRun.objects.filter(pk=run.pk).update(message=seen.progress)
    elif (
        run.state == DedupeRun.State.RUNNING
        or seen.last_began_at != run.previous_began_at
    ):
        is_done = seen.last_state.lower() == "success"
        move(
            run,
            DedupeRun.State.DONE if is_done else DedupeRun.State.FAILED,
            message="" if is_done else f"ONTAP ended it: {seen.last_error}.",
            **_after(seen),
        )


def _stop(run: DedupeRun, ontap: OntapGateway, *, why: str) -> None:
    """Stop a run; what it shared stays shared, and the next window goes on."""
    seen = ontap.stop_deduplication(run.volume.ontap_uuid)
    after = _after(seen) if seen is not None else {}
    move(run, DedupeRun.State.STOPPED, message=why, **after)


def _after(seen: VolumeEfficiency) -> dict[str, int | None]:
    return {
        "saved_after_bytes": seen.deduplicated_bytes,
        "took_after_bytes": seen.physical_bytes,
    }


def _due(
    plan: DedupePlan,
    window: dt.datetime,
    seen: Seen,
    volumes: Sequence[DedupeVolume],
) -> list[DedupeVolume]:
    """Return the volumes to deduplicate in this window, in their order.

    First those that were stopped, then those that were done longest ago. What ONTAP
    deduplicates inline, or somebody else scans, is left alone.
    """
    runs = DedupeRun.objects.filter(volume__in=volumes)
    ended = (DedupeRun.State.DONE, DedupeRun.State.FAILED)
    settled = runs.filter(Q(window_at=window, state__in=ended) | Q(state__in=OPEN))
    left_out = set(settled.values_list("volume_id", flat=True))
    last_done = dict(
        runs.filter(state=DedupeRun.State.DONE)
        .order_by()
        .values_list("volume_id")
        .annotate(at=Max("ended_at"))
    )
    last = runs.order_by("volume_id", "-pk").distinct("volume_id")
    stopped = {run.volume_id for run in last if run.state == DedupeRun.State.STOPPED}
    due = [
        volume
        for volume in covered_by(plan, volumes)
        if volume.pk not in left_out
        and seen[volume.ontap_uuid].is_online
        and not seen[volume.ontap_uuid].is_scanning
    ]
    never = dt.datetime.min.replace(tzinfo=dt.UTC)
    return sorted(
        due,
        key=lambda each: (each.pk not in stopped, last_done.get(each.pk, never)),
    )


# --- plans that ONTAP runs


def _arrange_policy(
    plan: DedupePlan,
    ontap: OntapGateway,
    seen: Seen,
    volumes: Sequence[DedupeVolume],
) -> None:
    """Let a policy of ONTAP run the plan where it can say it, and none otherwise."""
    name = ""
    wanted = _as_policy(plan, ontap)
    if wanted is not None:
        try:
            ontap.ensure_efficiency_policy(wanted)
            name = wanted.name
        except PermanentGatewayError as error:
            log.info("policy_not_made", site=plan.site.name, **error.log_context())
    having = {each.ontap_uuid for each in covered_by(plan, volumes)} if name else set()
    for uuid in having - {each.uuid for each in seen.values() if each.policy == POLICY}:
        ontap.set_efficiency_policy(uuid, name=POLICY)
    for each in seen.values():
        if each.policy == POLICY and each.uuid not in having and not each.is_clone:
            ontap.set_efficiency_policy(each.uuid, name="")
    DedupePlan.objects.filter(pk=plan.pk).update(ontap_policy=name)


def _as_policy(plan: DedupePlan, ontap: OntapGateway) -> EfficiencyPolicy | None:
    """Return the plan as a policy of ONTAP, None if it cannot say that.

    It knows no quiet times, only whole hours, and the schedules of the cluster.
    """
    if not plan.is_on or plan.waits_for_quiet or plan.minutes % 60:
        return None
    try:
        found = ontap.list_cron_schedules()
    except PermanentGatewayError:
        return None
    for name, cron in found.items():
        if schedules.are_same_times(cron, plan.cron):
            return EfficiencyPolicy(
                name=POLICY, schedule=name, hours=plan.minutes // 60
            )
    return None


def _note_runs_of_ontap(seen: Seen, volumes: Iterable[DedupeVolume]) -> None:
    """Record the last run that our policy started on each volume."""
    for volume in volumes:
        each = seen[volume.ontap_uuid]
        began = each.last_began_at
        if each.policy != POLICY or each.is_scanning or began is None:
            continue
        if volume.runs.filter(window_at=began).exists():
            continue
        days = ReductionDay.objects.filter(volume=volume).order_by("-day")
        before = days.first()
        is_done = each.last_state.lower() == "success"
        state = DedupeRun.State.DONE if is_done else DedupeRun.State.FAILED
        DedupeRun.objects.create(
            volume=volume,
            window_at=began,
            state=state,
            is_ontaps_own=True,
            message="" if is_done else f"ONTAP ended it: {each.last_error}.",
            saved_before_bytes=(before.by_deduplication_bytes if before else 0) or 0,
            took_before_bytes=before.physical_bytes if before else None,
            ended_at=each.last_ended_at or clocks.database_now(),
            **_after(each),
        )
