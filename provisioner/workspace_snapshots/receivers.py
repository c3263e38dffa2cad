"""What workspaces ask of their snapshots."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.events import asks_what_goes_along
from provisioner.workspaces.models import Workspace


@receiver(asks_what_goes_along)
def snapshots_go_along(workspace: Workspace, **kwargs: Any) -> str:
    """Return a sentence on the snapshots that a purge deletes, "" if there are none."""
    count = snapshots_of(workspace).count()
    if not count:
        return ""
    what = "snapshot goes" if count == 1 else "snapshots go"
    return f"Its {count} {what} with the clone. No more are taken in the trash."
