"""`?wait=SECONDS`: hold the answer until a workspace or a bisection has settled."""

from __future__ import annotations

import time
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from provisioner.workspaces.actions.bisecting import WAITS_FOR_VERDICT
from provisioner.workspaces.models import MOVING, Bisection, Workspace

LONGEST_WAIT_SECONDS = 60
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5


def wait_until_settled(workspace_id: int, *, seconds: float) -> None:
    """Return once the workspace is not moving, or the time is over."""
    _wait_while(
        Workspace.objects.filter(pk=workspace_id, state__in=MOVING), seconds=seconds
    )


def wait_until_asked_or_ended(bisection_id: int, *, seconds: float) -> None:
    """Return once a bisection has ended or waits for a verdict, or the time is over."""
    running = Bisection.objects.filter(pk=bisection_id, state=Bisection.State.RUNNING)
    _wait_while(running.exclude(status_code=WAITS_FOR_VERDICT), seconds=seconds)


def _wait_while(moving: QuerySet[Any], *, seconds: float) -> None:
    """Look again and again, at most for so long, while there is such a row.

    Call it outside any transaction: each look is a statement of its own, between
    growing pauses, so nothing is held meanwhile but the caller's thread. It is put
    together once, which takes longer than all its answers.
    """
    look, values = moving.order_by().values("pk")[:1].query.sql_with_params()
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while (left := deadline - time.monotonic()) > 0 and _finds(look, values):
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def _finds(look: str, values: tuple[Any, ...]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(look, values)
        return cursor.fetchone() is not None
