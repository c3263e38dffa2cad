"""Bisections: what the server would say of them, and how their steps end."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from provisioner.bisect.actions import bisection_go_on
from provisioner.bisect.models import Bisection, BisectionOperation
from provisioner.bisect.steps import Ran
from provisioner.bisect.sweeps import keep_changes
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.gateways.perforce.types import SubmittedChange
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state

CHANGES = [101, 105, 110, 111, 120, 130, 140, 150]


def read(bisection_id: int, changes: Iterable[int] = CHANGES) -> Bisection:
    """Store the changes in between, as the server would list them, and go on."""
    listed = [
        SubmittedChange(
            number=number,
            user="bob",
            submitted_at=timezone.now(),
            title=f"Title {number}",
            paths=(),
        )
        for number in changes
    ]
    keep_changes(bisection_id, listed)
    bisection_go_on(bisection_id)
    return Bisection.objects.get(pk=bisection_id)


def end_step(
    bisection: Bisection, *, verdict: str = "", code: str = "", message: str = ""
) -> None:
    """Let the step under way end as its last step would have it."""
    step = bisection.steps.get(verdict="")
    operation = step.workspace.operations.get(kind=BisectionOperation.STEP)
    run = operation.steps.filter(name="run").first()
    if not code and run is not None:
        engine_states.queue_step(run, job_id=1)
        engine_states.start_step(run)
        engine_states.finish_step(run, result=Ran(verdict=verdict, reason=message))
    to = Operation.State.FAILED if code else Operation.State.SUCCEEDED
    engine_states.end_operation(operation, to, code=code, message=message)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(
        step.workspace,
        Workspace.State.FAILED if code else Workspace.State.READY,
        code=code,
        message=message,
    )
    bisection_go_on(bisection.pk)
    bisection.refresh_from_db()
