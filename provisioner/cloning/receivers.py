"""What workspaces ask of their clones."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.cloning.models import CloningOperation, WorkspaceClone
from provisioner.cloning.queries import clones_held_by
from provisioner.gateways.errors import Busy
from provisioner.workspaces.events import (
    asks_how_to_make,
    asks_what_goes_along,
    clone_goes,
)
from provisioner.workspaces.models import Workspace


@receiver(asks_how_to_make)
def make_from_workspace(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the operation kind that makes a clone of a workspace, if it is one."""
    if workspace.ready_at is not None:
        return None
    is_one = WorkspaceClone.objects.filter(workspace=workspace).exists()
    return CloningOperation.CLONE if is_one else None


@receiver(asks_what_goes_along)
def clones_keep_it(workspace: Workspace, **kwargs: Any) -> str:
    """Return a sentence on the clones that hold a purge, "" if there are none."""
    named = [
        f"{each.workspace.name} of {each.workspace.owner.username}"
        for each in clones_held_by(workspace)
    ]
    if not named:
        return ""
    return f"Its purge waits until its clones are purged or split: {', '.join(named)}."


@receiver(clone_goes)
def wait_for_clones(workspace: Workspace, **kwargs: Any) -> None:
    """Hold a purge while clones need the volume: ONTAP would not delete it.

    Raises: Busy.
    """
    held = clones_held_by(workspace).first()
    if held is not None:
        raise Busy(
            f"Its clone {held.workspace.name} of {held.workspace.owner.username} still "
            "needs it. It is purged once that one is purged or split.",
            system="cloneyard",
            operation="purge",
        )
