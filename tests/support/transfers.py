"""Transfers as their steps would have left them."""

from __future__ import annotations

from django.utils import timezone

from provisioner.transfer.models import Conflict, Transfer
from provisioner.transfer.steps.conflicts import kept_aside, record_conflicts
from provisioner.workspaces.models import Workspace


def has_arrived(workspace: Workspace, *, outcome: str) -> None:
    """Let the transfer into a workspace be over, with one conflict left."""
    now = timezone.now()
    transfers = Transfer.objects.filter(workspace=workspace)
    transfers.update(
        plan={},
        planned_at=now,
        shelved_at=now,
        conflicts_left=1,
        counts={"opened": 3, "merged": 1, "untracked": 2, "left": {"missing": 4}},
        outcome=outcome,
        transferred_at=now,
    )
    conflict = kept_aside("a b.txt", "a b.txt.from-old")
    record_conflicts(transfers.get(), Conflict.Stage.COPY, [conflict])
