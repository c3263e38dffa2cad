"""Snapshots as the page of a workspace shows them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, Max

from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class SnapshotsOf:
    """How many snapshots there are of a workspace, and when the newest was taken."""

    count: int
    newest_at: dt.datetime | None


def snapshots_overview(workspace: Workspace) -> SnapshotsOf:
    """Return what the page of a workspace shows, in one query."""
    found = snapshots_of(workspace).aggregate(
        count=Count("pk"), newest_at=Max("taken_at")
    )
    return SnapshotsOf(**found)
