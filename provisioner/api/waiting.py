"""`?wait=SECONDS`: hold the answer until a workspace has settled."""

from __future__ import annotations

import time

from provisioner.workspaces.models import MOVING, Workspace

LONGEST_WAIT_SECONDS = 60
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5


def wait_until_settled(workspace_id: int, *, seconds: float) -> None:
    """Return once the workspace is not moving, or the time is over.

    Call it outside any transaction: each look is a statement of its own, between
    growing pauses, so nothing is held meanwhile but the caller's thread.
    """
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    moving = Workspace.objects.filter(pk=workspace_id, state__in=MOVING)
    while (left := deadline - time.monotonic()) > 0 and moving.exists():
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
