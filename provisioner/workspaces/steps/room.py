"""Free space of a workspace's clone."""

from __future__ import annotations

from provisioner.catalog.steps.room import Room
from provisioner.gateways.hosts.room import Lack
from provisioner.workspaces.steps.run import WorkspaceRun

_ADVICE = {
    Lack.INODES: "Its limit is raised within minutes, up to one per 4 KB. Retry "
    "then, or delete unneeded files.",
    Lack.BYTES: "Delete files that nobody needs, or ask an administrator to grow it. "
    "Then try again.",
}


def room_of(run: WorkspaceRun) -> Room:
    """Return the free space of the workspace's clone."""
    workspace = run.workspace
    return Room(
        volume_name=workspace.volume_name,
        root=lambda: run.visible_root(workspace.junction_path),
        advice=_ADVICE,
    )
