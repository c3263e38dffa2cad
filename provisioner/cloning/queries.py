"""Which workspaces are clones of another one."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.cloning.models import WorkspaceClone
from provisioner.workspaces.models import Workspace


def clones_held_by(source: Workspace) -> QuerySet[WorkspaceClone]:
    """Return the clones for which a workspace's volume has to stay.

    Not those that were split, nor purged ones.
    """
    made = WorkspaceClone.objects.filter(source=source, workspace__split_at=None)
    gone = made.exclude(workspace__state=Workspace.State.RETIRED)
    return gone.select_related("workspace__owner")
