"""Wait for the running step of an earlier operation."""

from __future__ import annotations

from provisioner.engine.models import Step
from provisioner.gateways.errors import Busy
from provisioner.workspaces.steps.run import WorkspaceRun


def ensure_quiet(run: WorkspaceRun) -> None:
    """Ensure that no step of an earlier operation is still running here.

    Retiring, restoring and purging begin with it, since each may interrupt another.
    """
    at_work = Step.objects.filter(
        operation__subject__workspace=run.workspace, state=Step.State.RUNNING
    ).exclude(operation=run.operation)
    names = ", ".join(at_work.values_list("name", flat=True))
    if names:
        raise Busy(
            f"An earlier operation is still running on {run.workspace.name}: {names}.",
            system="cloneyard",
            operation=run.operation.kind,
        )
