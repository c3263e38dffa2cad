"""The one writer of the states of runs."""

from __future__ import annotations

from typing import Any

from provisioner.efficiency.models import DedupeRun
from provisioner.lib import clocks

R = DedupeRun.State

RUN_TRANSITIONS: dict[DedupeRun.State, tuple[DedupeRun.State, ...]] = {
    R.REQUESTED: (R.RUNNING, R.STOPPED, R.DONE, R.FAILED),
    R.RUNNING: (R.STOPPED, R.DONE, R.FAILED),
    R.STOPPED: (),
    R.DONE: (),
    R.FAILED: (),
}


def move(run: DedupeRun, to: DedupeRun.State, **values: Any) -> bool:
    """Move a run to a state, unless it has gone on already; return whether it moved."""
    froms = [state for state, targets in RUN_TRANSITIONS.items() if to in targets]
    if not RUN_TRANSITIONS[to]:
        values["ended_at"] = clocks.database_now()
    moved = DedupeRun.objects.filter(pk=run.pk, state__in=froms).update(
        state=to, **values
    )
    return moved > 0
