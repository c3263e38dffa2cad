"""The API of snapshots of workspaces."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.workspace_snapshots.api import examples
from provisioner.workspace_snapshots.api.shapes import WorkspaceSnapshotSerializer
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.api.viewsets import OfWorkspace


class WorkspaceSnapshotViewSet(OfWorkspace):
    """Snapshots that ONTAP takes of a workspace by itself."""

    @described(
        "List snapshots of a workspace",
        "Newest first. A policy of its site says how many are kept.",
        ok=WorkspaceSnapshotSerializer(many=True),
        refused=[400, 404],
        examples=examples.SNAPSHOTS,
    )
    @action(methods=["get"], detail=True, serializer_class=WorkspaceSnapshotSerializer)
    def snapshots(self, request: Request, pk: int) -> Response:
        return self.page_of(snapshots_of(self.get_object()))
