"""What a transfer has to say before other things are done to its workspaces."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.lib.refusals import BeingCarried
from provisioner.transfer.models import Carry, TransferOperation
from provisioner.transfer.queries import carry_under_way
from provisioner.workspaces.events import asks_how_to_make, before_retiring
from provisioner.workspaces.models import Workspace


@receiver(before_retiring)
def refuse_while_work_leaves(workspace: Workspace, **kwargs: Any) -> None:
    """Keep a workspace whose work is being transferred.

    Raises: BeingCarried.
    """
    carry = carry_under_way(workspace)
    if carry is not None:
        raise BeingCarried(name=workspace.name, into=carry.workspace.name)


@receiver(asks_how_to_make)
def make_by_transfer(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the kind for what work is transferred to, checked anew until copied."""
    if workspace.ready_at is not None:
        return None
    carries = Carry.objects.filter(workspace=workspace)
    carries.filter(shelves=None).update(plan=None)
    return TransferOperation.TRANSFER if carries.exists() else None
