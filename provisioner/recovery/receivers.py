"""What workspaces ask of recoveries."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.recovery.models import Recovery, RecoveryOperation
from provisioner.workspaces.events import asks_how_to_make
from provisioner.workspaces.models import Workspace


@receiver(asks_how_to_make)
def make_from_copy(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the operation kind that makes a workspace from a copy, if it is one."""
    if workspace.ready_at is not None:
        return None
    is_one = Recovery.objects.filter(workspace=workspace).exists()
    return RecoveryOperation.RECOVER if is_one else None
