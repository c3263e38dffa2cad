"""A workspace that nobody has used for long."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from provisioner.leases.abandonment import WORDS, WORK, newest_of
from provisioner.workspaces.models import Workspace


def days_ago(days: float) -> dt.datetime:
    return timezone.now() - dt.timedelta(days=days)


def abandon(workspace: Workspace, *, days: int = 41, **signs: float) -> Workspace:
    """Let it have been ready and idle for so long; `signs` are days ago, by kind."""
    activity: dict[str, Any] = {
        kind: {"at": days_ago(ago).isoformat(), "detail": ""}
        for kind, ago in {"accessed": days, **signs}.items()
    }
    Workspace.objects.filter(pk=workspace.pk).update(
        worked_at=newest_of(activity, WORK),
        used_at=newest_of(activity, WORDS),
        ready_at=days_ago(days),
        created_at=days_ago(days),
        activity=activity,
        activity_seen_at=timezone.now(),
    )
    workspace.refresh_from_db()
    return workspace
