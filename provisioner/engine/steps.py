"""Steps that the workflows of any feature may begin with."""

from __future__ import annotations

from provisioner.engine.models import Step
from provisioner.engine.step_run import StepRun
from provisioner.gateways.errors import Busy


def ensure_quiet(run: StepRun) -> None:
    """Ensure that no step of an earlier operation is still running on its subject.

    What may interrupt another operation begins with it.

    Raises: Busy.
    """
    subject = run.operation.subject
    at_work = Step.objects.filter(
        operation__subject=subject, state=Step.State.RUNNING
    ).exclude(operation=run.operation)
    names = ", ".join(at_work.values_list("name", flat=True))
    if names:
        raise Busy(
            f"An earlier operation is still running on {subject}: {names}.",
            system="cloneyard",
            operation=run.operation.kind,
        )
