"""The rescues of a workspace."""

from __future__ import annotations

from provisioner.workspaces.models import Workspace
from provisioner.workspaces.models.rescues import RescueQuerySet


def rescues_of(workspace: Workspace) -> RescueQuerySet:
    """Return the rescues with work in them, newest first."""
    return workspace.rescues.with_work().select_related("workspace__site")
