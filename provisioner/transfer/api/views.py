"""The API of transfers of work into a newer workspace."""

from __future__ import annotations

from django.http import Http404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import chosen
from provisioner.api.waiting import WaitQuery
from provisioner.transfer.actions import workspace_transfer, workspace_transfer_abort
from provisioner.transfer.api import examples
from provisioner.transfer.api.shapes import (
    TransferRequestSerializer,
    TransferSerializer,
)
from provisioner.transfer.queries import transfer_of
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.viewsets import OfWorkspace


class WorkspaceTransferViewSet(OfWorkspace):
    """Transfer the work of a workspace into a newer one."""

    makes_workspaces = "transfer"

    @described(
        "Transfer the work of a workspace",
        "The answer is the new workspace, of a newer snapshot. It is `ready` once "
        "all opened files have arrived; conflicts are in its `transfer`. This "
        "workspace is only read, and retired if there are no conflicts.",
        body=TransferRequestSerializer,
        ok=WorkspaceSerializer,
        status=202,
        refused=[403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.TRANSFER,
    )
    @action(methods=["post"], detail=True)
    def transfer(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        asked = self.read_body(TransferRequestSerializer)
        snapshot = None
        if "snapshot" in asked:
            snapshot = chosen(
                workspace.template.snapshots.all(),
                word=f"snapshot of {workspace.template.name}",
                id_or_name=asked["snapshot"],
            )
        made = workspace_transfer(
            by=self.user,
            workspace=workspace,
            snapshot=snapshot,
            name=asked.get("name", ""),
            takes_changed=asked["changed"],
            takes_untracked=asked["untracked"],
            retires_source=asked["retire"],
        )
        return self.settled(made, seconds=seconds)

    @described(
        "Stop a transfer",
        "Call it on the new workspace: it is retired with all copies. The source "
        "workspace does not change.",
        ok=WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.ABORT,
    )
    @action(methods=["post"], detail=True, url_path="transfer/abort")
    def abort(self, request: Request, pk: int) -> Response:
        return self.settled_after(workspace_transfer_abort)

    @described(
        "Show a transfer",
        "What arrived, and each conflict with the p4 commands to resolve it. 404 "
        "if no work was transferred into it.",
        ok=TransferSerializer,
        refused=[404],
        operation_id="workspaces_transfer_get",
        examples=examples.GET,
    )
    @transfer.mapping.get  # type: ignore[untyped-decorator]
    def transfer_outcome(self, request: Request, pk: int) -> Response:
        transferred = transfer_of(self.get_object())
        if transferred is None:
            raise Http404
        return Response(TransferSerializer(transferred).data)
