"""The API of snapshots of workspaces, and of the policies for them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.lib.refusals import InvalidRequest
from provisioner.workspace_snapshots import actions
from provisioner.workspace_snapshots.api import examples
from provisioner.workspace_snapshots.api.shapes import (
    SnapshotChoiceSerializer,
    SnapshotPolicySerializer,
    TakeBackSerializer,
    WorkspaceSnapshotSerializer,
)
from provisioner.workspace_snapshots.models import SnapshotPolicy, WorkspaceSnapshot
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.permissions import can_change_workspace


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

    @described(
        "Compare a workspace with a snapshot",
        "For those who may change the workspace, where its site shows .snapshot. The "
        "answer is the operation to follow; its findings list what was added, changed "
        "and removed.",
        body=SnapshotChoiceSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.COMPARE,
    )
    @action(methods=["post"], detail=True, url_path="snapshots/compare")
    def compare(self, request: Request, pk: int) -> Response:
        snapshot, _ = self._asked(SnapshotChoiceSerializer)
        operation = actions.snapshot_compare(by=self.user, snapshot=snapshot)
        return operation_answer(request, operation)

    @described(
        "Take back a file or directory from a snapshot",
        "Nothing is overwritten: what differs now is first renamed, to a name that "
        "ends with “.newer-” and the time. The findings say which.",
        body=TakeBackSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.TAKE_BACK,
    )
    @action(methods=["post"], detail=True, url_path="snapshots/take-back")
    def take_back(self, request: Request, pk: int) -> Response:
        snapshot, asked = self._asked(TakeBackSerializer)
        operation = actions.snapshot_take_back(
            by=self.user, snapshot=snapshot, path=asked["path"]
        )
        return operation_answer(request, operation)

    @described(
        "Retry what could not be restored",
        "Takes back the files that the last restore from the snapshot, or the last "
        "taking back, could not write, as its findings name them.",
        body=SnapshotChoiceSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RETRY,
    )
    @action(methods=["post"], detail=True, url_path="snapshots/retry")
    def retry_snapshot(self, request: Request, pk: int) -> Response:
        snapshot, _ = self._asked(SnapshotChoiceSerializer)
        operation = actions.snapshot_retry(by=self.user, snapshot=snapshot)
        return operation_answer(request, operation)

    @described(
        "Restore a workspace to a snapshot",
        "In place: files, have list and opened files become what they were. What is "
        "there now is kept as a snapshot first. The operation ends as refused while "
        "files are opened; its findings list them.",
        body=SnapshotChoiceSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RESTORE,
    )
    @action(methods=["post"], detail=True, url_path="snapshots/restore")
    def restore_snapshot(self, request: Request, pk: int) -> Response:
        snapshot, _ = self._asked(SnapshotChoiceSerializer)
        operation = actions.snapshot_restore(by=self.user, snapshot=snapshot)
        return operation_answer(request, operation)

    def _asked(
        self, shape: type[SnapshotChoiceSerializer]
    ) -> tuple[WorkspaceSnapshot, dict[str, Any]]:
        """Return the snapshot of the request, and all that it says."""
        workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        asked = self.read_body(shape)
        snapshots = snapshots_of(workspace).select_related("workspace__site")
        snapshot = snapshots.filter(pk=asked["snapshot"]).first()
        if snapshot is None:
            raise InvalidRequest("The workspace has no such snapshot.")
        return snapshot, asked


class SnapshotPolicyViewSet(ShortListViewSet):
    """For administrators: how many snapshots ONTAP keeps of workspaces."""

    queryset = SnapshotPolicy.objects.none()
    serializer_class = SnapshotPolicySerializer

    def get_queryset(self) -> QuerySet[SnapshotPolicy]:
        permissions.require(permissions.can_administer(self.user))
        return SnapshotPolicy.objects.select_related("site", "template")

    @described(
        "List snapshot policies",
        "For administrators, by site.",
        ok=SnapshotPolicySerializer(many=True),
        refused=[403],
        examples=examples.POLICIES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Set a snapshot policy",
        "For administrators. One for the same site, template and purpose is replaced. "
        "0 and 0 take none. A sweep applies it within minutes.",
        body=SnapshotPolicySerializer,
        ok=SnapshotPolicySerializer,
        refused=[400, 403],
        examples=examples.SET_POLICY,
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(SnapshotPolicySerializer)
        return self.shown(actions.snapshot_policy_save(by=self.user, **asked))

    @described(
        "Delete a snapshot policy",
        "For administrators. A more general one counts then, or none.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        actions.snapshot_policy_delete(by=self.user, policy=self.get_object())
        return Response(status=204)
