"""Go on with runs that wait for their workspaces."""

from __future__ import annotations

from contextlib import suppress

from procrastinate.contrib.django import app

from provisioner.lib.refusals import StateChanged
from provisioner.qualification.actions.batches import go_on
from provisioner.qualification.models import QualificationRun


@app.periodic(cron="* * * * * */5")
@app.task(
    name="sweep_qualifications", queue="sweeps", queueing_lock="sweep_qualifications"
)
def sweep_qualifications(timestamp: int) -> None:
    """Request, time and remove the workspaces of every run that measures them."""
    waiting = QualificationRun.objects.filter(
        state=QualificationRun.State.WAITING, template__isnull=False
    ).select_related("template__site", "site", "owner")
    for run in waiting.order_by("pk"):
        # Another sweep went on with it meanwhile.
        with suppress(StateChanged):
            go_on(run)
