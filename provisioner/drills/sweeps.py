"""Each minute: begin the drills that are due by plan, and end those that hang."""

from __future__ import annotations

import datetime as dt

from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.drills.actions import (
    drill_failed,
    drill_give_up,
    drill_start,
    note_failed,
)
from provisioner.drills.models import DrillPlan
from provisioner.drills.queries import hanging, lost
from provisioner.lib import clocks
from provisioner.sandboxes import planning


@app.periodic(cron="* * * * *")
@app.task(name="sweep_drills", queue="sweeps", queueing_lock="sweep_drills")
def sweep_drills(timestamp: int) -> None:
    """Begin what is due, and give up what hangs."""
    now = clocks.database_now()
    start_due(now=now)
    give_up(now=now)


def start_due(*, now: dt.datetime) -> int:
    """Begin the drills that are due, each once; return how many."""
    return planning.request_due(
        DrillPlan,
        now=now,
        request=lambda plan, due: drill_start(
            by=system_user(),
            server=plan.server,
            at=due,
            reason=f"Due by plan: {plan.cron}.",
        ),
        fail=lambda plan, why: note_failed(plan.server, message=why),
    )


def give_up(*, now: dt.datetime) -> int:
    """Fail the drills that do not come to their end; return how many."""
    failed, hang = list(lost()), list(hanging(now=now))
    for drill in failed:
        drill_failed(drill.sandbox, message=drill.sandbox.status_message)
    for drill in hang:
        drill_give_up(drill)
    return len(failed) + len(hang)
