"""Keep mirrors up to date, and notice what others changed in ONTAP."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from itertools import groupby

import structlog
from django.db import transaction
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.engine.models import Operation, Step
from provisioner.engine.states import IN_FLIGHT, lock_operation, skip_step
from provisioner.engine.tasks import advance
from provisioner.engine.workers import alive_workers, unserved
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.types import Relationship
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, StateChanged
from provisioner.lib.schedules import next_time
from provisioner.mirrors import advice
from provisioner.mirrors.actions import begin_transfer
from provisioner.mirrors.models import Mirror, MirrorOperation
from provisioner.mirrors.queries import next_to_transfer
from provisioner.mirrors.steps.filling import Compared
from provisioner.sites.models import Site

log = structlog.get_logger(__name__)

RETRIED_AFTER = dt.timedelta(minutes=10)
COMPARISON_WAITS = dt.timedelta(minutes=5)


@app.periodic(cron="* * * * * */15")
@app.task(name="sweep_mirrors", queue="sweeps", queueing_lock="sweep_mirrors")
def sweep_mirrors(timestamp: int) -> None:
    """Begin the transfers that are due: by schedule, retries, what was missed.

    Comparisons that wait for a worker which is not there end.
    """
    now = clocks.database_now()
    transfer_all(now=now)
    end_waits(now=now)


def transfer_all(*, now: dt.datetime) -> int:
    """Begin the transfers that are due; return their number.

    A failed transfer is tried again after ten minutes. A mirror that could not be
    created waits for somebody to retry it. However many times of a schedule were
    missed, one transfer makes up for them.
    """
    is_time = Q(start=Mirror.Start.AT_ONCE) | Q(next_transfer_at__lte=now)
    is_due = (Q(state=Mirror.State.READY) & is_time) | Q(
        state=Mirror.State.FAILED, failed_at__lt=now - RETRIED_AFTER
    )
    mirrors = (
        Mirror.objects.filter(is_due, template__archived_at=None)
        .exclude(start=Mirror.Start.BY_HAND)
        .exclude(relationship_uuid="")
        .select_related("template", "site")
    )
    return sum(_transfer_due(mirror, now=now) for mirror in mirrors)


def _transfer_due(mirror: Mirror, *, now: dt.datetime) -> bool:
    has_begun = transfer_next(mirror)
    if mirror.start == Mirror.Start.SCHEDULE:
        # Not if somebody has changed the schedule meanwhile.
        Mirror.objects.filter(
            pk=mirror.pk, next_transfer_at=mirror.next_transfer_at
        ).update(next_transfer_at=next_time(mirror.cron, after=now))
    return has_begun


def transfer_next(mirror: Mirror) -> bool:
    """Begin to transfer the template's default snapshot, if the mirror lacks it."""
    snapshot = next_to_transfer(mirror)
    if snapshot is None:
        return False
    try:
        begin_transfer(by=system_user(), mirror=mirror, snapshot=snapshot)
    except ActionRefused as refusal:
        log.info("transfer_not_begun", mirror_id=mirror.pk, reason=refusal.sentence)
        return False
    return True


def end_waits(*, now: dt.datetime) -> None:
    """Skip comparisons of files that have waited long, where no worker could do them.

    They were planned while one ran. Where none runs at the beginning, none is planned.
    """
    waiting = Step.objects.filter(
        state__in=IN_FLIGHT,
        name=Compared.step,
        operation__kind=MirrorOperation.TRANSFER,
        queued_at__lte=now - COMPARISON_WAITS,
    ).select_related("operation")
    if not waiting:
        return
    workers = alive_workers()
    for step in waiting:
        if unserved([step.operation.site.host_queue], workers):
            _skip(step)


def _skip(step: Step) -> None:
    with suppress(StateChanged), transaction.atomic():
        operation = lock_operation(step.operation)
        if operation.state == Operation.State.RUNNING:
            skip_step(step)
            advance(operation)
            log.warning("comparison_skipped", operation_id=operation.pk)


@app.periodic(cron="* * * * *")
@app.task(name="check_mirrors", queue="storage", queueing_lock="check_mirrors")
def check_mirrors(timestamp: int) -> None:
    """Compare every resting mirror with its relationship in ONTAP."""
    check_all(now=clocks.database_now())


def check_all(*, now: dt.datetime) -> None:
    """Write the trouble of mirrors; one request for each site."""
    resting = (Mirror.State.READY, Mirror.State.FAILED)
    mirrors = (
        Mirror.objects.filter(state__in=resting)
        .exclude(relationship_uuid="")
        .select_related("template", "site")
        .order_by("site", "pk")
    )
    for site, at_site in groupby(mirrors, key=lambda mirror: mirror.site):
        _check_site(site, list(at_site), now=now)


def _check_site(site: Site, mirrors: list[Mirror], *, now: dt.datetime) -> None:
    try:
        found = registry.ontap(site).list_relationships()
    except GatewayError as error:
        trouble = f"{site.name} could not be checked. {error}"
        Mirror.objects.filter(pk__in=[m.pk for m in mirrors]).update(trouble=trouble)
        return
    by_path = {each.destination_path: each for each in found}
    for mirror in mirrors:
        relationship = by_path.get(mirror.volume_path)
        Mirror.objects.filter(pk=mirror.pk).update(
            trouble=_trouble_of(mirror, relationship), checked_at=now
        )


def _trouble_of(mirror: Mirror, relationship: Relationship | None) -> str:
    trouble = advice.on_relationship(mirror, relationship)
    if trouble is not None:
        return trouble.sentence
    assert relationship is not None
    if not relationship.is_healthy:
        return f"SnapMirror reports a problem. {relationship.unhealthy_reason}".strip()
    return ""
