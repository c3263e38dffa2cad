"""The API of splits of a workspace's clone, and of what holds snapshots."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.catalog.models import Snapshot
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.storage import actions
from provisioner.storage.api import examples
from provisioner.storage.api.shapes import (
    HeldSnapshotQuery,
    HeldSnapshotSerializer,
    SplitSerializer,
)
from provisioner.storage.overviews import held, snapshots_matching
from provisioner.storage.previews import split_preview
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.permissions import can_change_workspace


class WorkspaceSplitViewSet(OfWorkspace):
    """Make a workspace independent of its snapshot."""

    @described(
        "Split a workspace from its snapshot",
        "For administrators, and for owners where the site's policy says so. The "
        "workspace stays usable meanwhile. After a stop or a failure it goes on. The "
        "answer is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.SPLIT,
    )
    @action(methods=["post"], detail=True)
    def split(self, request: Request, pk: int) -> Response:
        operation = actions.workspace_split(by=self.user, workspace=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Preview a split",
        "What a split of the workspace's clone would copy and free now, and the last "
        "one that was requested. For those who may change it.",
        ok=SplitSerializer,
        refused=[403, 404],
        operation_id="workspaces_split_get",
        examples=examples.PREVIEW,
    )
    @split.mapping.get  # type: ignore[untyped-decorator]
    def preview(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        return Response(SplitSerializer(split_preview(self.user, workspace)).data)

    @described(
        "Stop a split",
        "What was copied stays copied, and the workspace stays a clone. The answer is "
        "the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.STOP,
    )
    @action(methods=["post"], detail=True, url_path="split/stop")
    def stop_split(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        operation = actions.workspace_split_stop(by=self.user, workspace=workspace)
        return operation_answer(request, operation)


class HeldSnapshotViewSet(ApiViewSet):
    """For administrators: what holds each published snapshot."""

    queryset = Snapshot.objects.none()
    serializer_class = HeldSnapshotSerializer

    @described(
        "List what holds snapshots",
        "For administrators. Each published snapshot with its size, the workspaces "
        "that need it and what else keeps it. Newest first.",
        ok=HeldSnapshotSerializer(many=True),
        refused=[400, 403],
        parameters=[HeldSnapshotQuery],
        operation_id="storage_snapshots_list",
        examples=examples.HELD,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(HeldSnapshotQuery)
        page = self.paginate_queryset(snapshots_matching(self.user, **query))
        shown = HeldSnapshotSerializer(held(page or []), many=True)
        return self.get_paginated_response(shown.data)
