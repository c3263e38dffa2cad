"""Each minute: begin the drills that are due by plan."""

from __future__ import annotations

import datetime as dt

import structlog
from django.db import transaction
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.drills.actions import drill_start
from provisioner.drills.models import DrillPlan
from provisioner.lib import clocks, schedules
from provisioner.lib.refusals import ActionRefused

log = structlog.get_logger(__name__)


@app.periodic(cron="* * * * *")
@app.task(name="sweep_drills", queue="sweeps", queueing_lock="sweep_drills")
def sweep_drills(timestamp: int) -> None:
    """Begin what is due."""
    start_due(now=clocks.database_now())


def start_due(*, now: dt.datetime) -> int:
    """Begin the drills that are due, each once; return how many.

    One that is refused has failed, and is reported: the next one is due by its plan.
    """
    plans = DrillPlan.objects.filter(is_on=True).select_related("server")
    return sum(_start(plan, now=now) for plan in plans)


def _start(plan: DrillPlan, *, now: dt.datetime) -> bool:
    due = schedules.last_time(plan.cron, now=now)
    # What was due before somebody changed the plan is not made up for.
    if due is None or due <= plan.changed_at:
        return False
    not_tried = Q(tried_for__isnull=True) | Q(tried_for__lt=due)
    if not DrillPlan.objects.filter(not_tried, pk=plan.pk, is_on=True).update(
        tried_for=due
    ):
        return False
    try:
        drill_start(
            by=system_user(), server=plan.server, reason=f"Due by plan: {plan.cron}."
        )
    except ActionRefused as refusal:
        log.info("drill_refused", server_id=plan.server_id, code=refusal.code)
        with transaction.atomic():
            record_event(
                plan.server,
                kind="drill_failed",
                message=f"The drill due at {due:%Y-%m-%d %H:%M} UTC was not begun. "
                f"{refusal.sentence}",
            )
        return False
    return True
