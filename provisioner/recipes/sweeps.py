"""Each minute: request the checkpoints that are due by plan."""

from __future__ import annotations

import datetime as dt

import structlog
from django.db import transaction
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.lib import clocks, schedules
from provisioner.lib.refusals import ActionRefused
from provisioner.recipes.actions import checkpoint_make, name_at, note_failed
from provisioner.recipes.models import CheckpointPlan

WAITS_AT_MOST = dt.timedelta(hours=1)
"""How long a due checkpoint waits for a place at its host."""

log = structlog.get_logger(__name__)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_checkpoints", queue="sweeps", queueing_lock="sweep_checkpoints")
def sweep_checkpoints(timestamp: int) -> None:
    """Request what is due."""
    request_due(now=clocks.database_now())


def request_due(*, now: dt.datetime) -> int:
    """Request the checkpoints that are due, each once; return how many.

    One that is refused is tried each minute for an hour. Then it has failed.
    """
    plans = CheckpointPlan.objects.filter(is_on=True)
    return sum(
        _request(plan, now=now)
        for plan in plans.select_related("server", "host", "version")
    )


def _request(plan: CheckpointPlan, *, now: dt.datetime) -> bool:
    due = schedules.last_time(plan.cron, now=now)
    # What was due before somebody changed the plan is not made up for.
    if due is None or (plan.changed_at is not None and due <= plan.changed_at):
        return False
    not_tried = Q(tried_for__isnull=True) | Q(tried_for__lt=due)
    mine = CheckpointPlan.objects.filter(not_tried, pk=plan.pk, is_on=True)
    if not mine.exists():
        return False
    try:
        with transaction.atomic():
            if not mine.update(tried_for=due):
                return False
            checkpoint_make(
                by=system_user(),
                server=plan.server,
                name=name_at(due, plan.server),
                reason=f"Due by plan: {plan.cron}.",
            )
    except ActionRefused as refusal:
        _refused(plan, refusal, due=due, now=now)
        return False
    return True


def _refused(
    plan: CheckpointPlan, refusal: ActionRefused, *, due: dt.datetime, now: dt.datetime
) -> None:
    log.info("checkpoint_refused", server_id=plan.server_id, code=refusal.code)
    if now < due + WAITS_AT_MOST:
        CheckpointPlan.objects.filter(pk=plan.pk).update(
            status=f"Due at {due:%H:%M} UTC, and tried each minute. {refusal.sentence}"
        )
        return
    with transaction.atomic():
        if CheckpointPlan.objects.filter(pk=plan.pk).update(tried_for=due):
            note_failed(
                plan.server,
                message=f"The checkpoint due at {due:%Y-%m-%d %H:%M} UTC was not made. "
                f"{refusal.sentence}",
            )
