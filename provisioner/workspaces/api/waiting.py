"""`?wait=SECONDS` for workspaces."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.api.waiting import wait_while
from provisioner.workspaces.models import MOVING, Workspace


def wait_until_settled(workspace_id: int, *, seconds: float, by: User) -> bool:
    """Wait until no operation moves the workspace, or the time is over.

    Return False if too many requests wait already, so that this one did not.
    """
    moving = Workspace.objects.filter(pk=workspace_id, state__in=MOVING)
    return wait_while(moving, seconds=seconds, by=by)
