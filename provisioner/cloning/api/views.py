"""The API that clones workspaces."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.api.schema import described
from provisioner.api.waiting import WaitQuery
from provisioner.cloning.actions import workspace_clone
from provisioner.cloning.api import examples
from provisioner.cloning.api.shapes import WorkspaceCloneSerializer
from provisioner.cloning.refusals import SnapshotOfAnother
from provisioner.lib.refusals import InvalidRequest
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.permissions import can_clone_workspace


class WorkspaceCloneViewSet(OfWorkspace):
    """Clone a workspace with its have list and opened files."""

    makes_workspaces = "clone"

    @described(
        "Clone a workspace",
        "The answer is the new workspace: files, have list and opened files of a ready "
        "workspace as it is now, or of one of its snapshots. The original is not "
        "touched; it keeps a snapshot as long as the clone.",
        body=WorkspaceCloneSerializer,
        ok=WorkspaceSerializer,
        status=202,
        refused=[403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.CLONE,
    )
    @action(methods=["post"], detail=True)
    def clone(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        permissions.require(can_clone_workspace(self.user, workspace))
        asked = self.read_body(WorkspaceCloneSerializer)
        owner = snapshot = None
        if "owner" in asked:
            owner = User.objects.filter(username=asked["owner"]).first()
            if owner is None:
                raise InvalidRequest(f"There is no account “{asked['owner']}”.")
        if "snapshot" in asked:
            snapshot = snapshots_of(workspace).filter(pk=asked["snapshot"]).first()
            if snapshot is None:
                raise SnapshotOfAnother(name=workspace.name)
        made = workspace_clone(
            by=self.user,
            source=workspace,
            owner=owner,
            name=asked.get("name", ""),
            snapshot=snapshot,
        )
        return self.settled(made, seconds=seconds)
