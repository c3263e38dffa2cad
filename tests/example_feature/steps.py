"""The two steps of an errand. Each is safe to repeat."""

from __future__ import annotations

from provisioner.engine.step_run import StepRun
from provisioner.lib.refusals import StepRefused


def ensure_gone(run: StepRun) -> None:
    """Ensure that whoever runs the errand has left."""
    run.progress("On the way")


def ensure_back(run: StepRun) -> None:
    """Ensure that whoever runs the errand is back."""
    if run.operation.subject.row.name == "lost":
        raise StepRefused("It lost its way.", code="lost_its_way")
