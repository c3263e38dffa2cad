"""Go on with runs that wait: for their workspaces, or for a sandbox."""

from __future__ import annotations

from contextlib import suppress

from procrastinate.contrib.django import app

from provisioner.lib.refusals import StateChanged
from provisioner.qualification.actions.baselines import fail_without_sandbox
from provisioner.qualification.actions.batches import go_on
from provisioner.qualification.models import QualificationRun


@app.periodic(cron="* * * * * */5")
@app.task(
    name="sweep_qualifications", queue="sweeps", queueing_lock="sweep_qualifications"
)
def sweep_qualifications(timestamp: int) -> None:
    """Request, time and remove workspaces, and end runs whose sandbox failed."""
    waiting = QualificationRun.objects.filter(
        state=QualificationRun.State.WAITING
    ).select_related("template__site", "site", "owner", "sandbox")
    for run in waiting.order_by("pk"):
        act = fail_without_sandbox if run.template is None else go_on
        # Another sweep went on with it meanwhile.
        with suppress(StateChanged):
            act(run)
