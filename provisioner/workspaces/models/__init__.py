"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.workspaces.models.clients import WorkspaceClient
from provisioner.workspaces.models.kinds import (
    BESIDE_WORK,
    FROM_SNAPSHOTS,
    OF_SNAPSHOTS,
    SPLITS,
    RetireParameters,
    WorkspaceOperation,
)
from provisioner.workspaces.models.records import ReadClient, RecordedClient
from provisioner.workspaces.models.rescues import Rescue
from provisioner.workspaces.models.shares import Share
from provisioner.workspaces.models.workspaces import (
    LEASED,
    MOVING,
    PUT_AWAY,
    Unsubmitted,
    Workspace,
    WorkspaceQuerySet,
)

__all__ = [
    "BESIDE_WORK",
    "FROM_SNAPSHOTS",
    "LEASED",
    "MOVING",
    "OF_SNAPSHOTS",
    "PUT_AWAY",
    "SPLITS",
    "ReadClient",
    "RecordedClient",
    "Rescue",
    "RetireParameters",
    "Share",
    "Unsubmitted",
    "Workspace",
    "WorkspaceClient",
    "WorkspaceOperation",
    "WorkspaceQuerySet",
]
