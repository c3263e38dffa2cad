"""Each minute: request what is due by plans, and look for checkpoints that are late."""

from __future__ import annotations

import datetime as dt

from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.lib import clocks
from provisioner.recipes.actions import (
    checkpoint_make,
    note_checkpoint_failed,
    note_checkpoint_late,
    note_verification_failed,
    verification_make,
)
from provisioner.recipes.models import CheckpointPlan, VerificationPlan
from provisioner.recipes.queries import late_plans
from provisioner.sandboxes import planning


@app.periodic(cron="* * * * *")
@app.task(name="sweep_recipes", queue="sweeps", queueing_lock="sweep_recipes")
def sweep_recipes(timestamp: int) -> None:
    """Request what is due, and tell administrators what is late."""
    now = clocks.database_now()
    request_due(now=now)
    tell_late(now=now)


def request_due(*, now: dt.datetime) -> int:
    """Request the checkpoints and verifications that are due; return how many."""
    checkpoints = planning.request_due(
        CheckpointPlan,
        now=now,
        request=lambda plan, due: checkpoint_make(
            by=system_user(),
            server=plan.server,
            at=due,
            reason=f"Due by plan: {plan.cron}.",
        ),
        fail=lambda plan, why: note_checkpoint_failed(plan.server, message=why),
    )
    verifications = planning.request_due(
        VerificationPlan,
        now=now,
        request=lambda plan, due: verification_make(
            by=system_user(),
            server=plan.server,
            at=due,
            reason=f"Due by plan: {plan.cron}.",
        ),
        fail=lambda plan, why: note_verification_failed(plan.server, message=why),
    )
    return checkpoints + verifications


def tell_late(*, now: dt.datetime) -> int:
    """Tell administrators which servers have no recent checkpoint; return how many."""
    return sum(note_checkpoint_late(plan, now=now) for plan in late_plans(now=now))
