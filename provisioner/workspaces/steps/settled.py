"""What retirements have settled of a client, until it is back with all that it knew."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from provisioner.workspaces.models import Operation, Rescue
from provisioner.workspaces.steps.run import StepRun


def since_whole(run: StepRun) -> QuerySet[Operation]:
    """Return the operations since the client was whole, which go on with one another.

    They begin with the retirement that found it so, or with the last restoration.
    """
    operations = run.workspace.operations.order_by("pk")
    was_whole = operations.filter(
        Q(kind=Operation.Kind.RESTORE, state=Operation.State.SUCCEEDED)
        | Q(kind=Operation.Kind.RETIRE, steps__remote__is_half_restored=False)
    ).last()
    if was_whole is None:
        return operations
    return operations.filter(pk__gte=was_whole.pk)


def last_rescue(run: StepRun) -> Rescue | None:
    """Return what was kept of the client since it was whole, None where nothing was."""
    return Rescue.objects.filter(
        operation__in=since_whole(run), is_complete=True
    ).first()
