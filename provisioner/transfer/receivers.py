"""What a transfer has to say before other things are done to its workspaces."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.transfer.models import Transfer, TransferOperation
from provisioner.transfer.queries import transfer_under_way
from provisioner.workspaces.events import asks_how_to_make, before_retiring
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import BeingTransferred


@receiver(before_retiring)
def refuse_while_work_leaves(workspace: Workspace, **kwargs: Any) -> None:
    """Keep a workspace whose work is being transferred.

    Raises: BeingTransferred.
    """
    transfer = transfer_under_way(workspace)
    if transfer is not None:
        raise BeingTransferred(name=workspace.name, into=transfer.workspace.name)


@receiver(asks_how_to_make)
def make_by_transfer(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the kind for what work is transferred to, checked anew until copied."""
    if workspace.ready_at is not None:
        return None
    transfers = Transfer.objects.filter(workspace=workspace)
    transfers.filter(shelves=None).update(plan=None)
    return TransferOperation.TRANSFER if transfers.exists() else None
