"""What workspaces ask of transfers: who stays, how to retry, what is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from provisioner.lib.refusals import ActionRefused
from provisioner.transfer.models import Transfer, TransferOperation
from provisioner.transfer.queries import transfers_under_way
from provisioner.transfer.steps.plan import blockers_of
from provisioner.workspaces.events import (
    asks_findings,
    asks_how_to_make,
    asks_what_stays,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import BeingTransferred
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import CheckResult


@receiver(asks_what_stays)
def refuse_while_work_leaves(
    workspaces: Sequence[Workspace], **kwargs: Any
) -> dict[int, ActionRefused]:
    """Refuse to end workspaces whose work is being transferred."""
    leaving = transfers_under_way(workspaces)
    return {
        workspace.pk: BeingTransferred(
            name=workspace.name, into=leaving[workspace.pk].workspace.name
        )
        for workspace in workspaces
        if workspace.pk in leaving
    }


@receiver(asks_findings)
def find_blockers(
    run: WorkspaceRun, check: CheckResult, **kwargs: Any
) -> dict[str, list[str]]:
    """Return what prevents a transfer of the work that a check found."""
    is_for_work = run.workspace.purpose == Workspace.Purpose.DEVELOPMENT
    return {"blockers": list(blockers_of(run, check)) if is_for_work else []}


@receiver(asks_how_to_make)
def make_by_transfer(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the operation kind that makes a workspace by a transfer, if it is one."""
    if workspace.ready_at is not None:
        return None
    transfers = Transfer.objects.filter(workspace=workspace)
    transfers.filter(shelved_at=None).update(plan=None, planned_at=None)
    return TransferOperation.TRANSFER if transfers.exists() else None
