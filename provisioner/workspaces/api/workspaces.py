"""The API of workspaces: find, retire, restore, retry and purge them."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.waiting import WaitQuery
from provisioner.catalog.queries import named_template
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.api import examples, shapes
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.models import Workspace


class WorkspaceLifeViewSet(OfWorkspace):
    """Workspaces, and actions on one."""

    @described(
        "List workspaces",
        "History is included, unless `retired` or `state` leaves it out.",
        ok=shapes.WorkspaceSerializer,
        refused=[400],
        parameters=[shapes.WorkspaceListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(shapes.WorkspaceListQuery)
        template, has_retired = query.pop("template", None), query.pop("retired")
        workspaces = self.get_queryset().filter(**query)
        if template is not None:
            workspaces = workspaces.filter(named_template(template))
        if not has_retired:
            workspaces = workspaces.exclude(state=Workspace.State.RETIRED)
        return self.page_of(workspaces)

    @described(
        "Get a workspace",
        ok=shapes.WorkspaceSerializer,
        also={202: shapes.WorkspaceSerializer},
        refused=[400, 404],
        parameters=[WaitQuery],
        examples=examples.POLL,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        if not seconds:
            return self.shown(workspace)
        return self.settled(workspace, seconds=seconds, status=200)

    @described(
        "Check a workspace for unsubmitted work",
        "This changes nothing. The answer is the operation to follow: its `findings` "
        "list what there is by kind, with `counts` and bytes; `blockers` are sentences "
        "that say why the work cannot be transferred.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.CHECK,
    )
    @action(methods=["post"], detail=True)
    def check(self, request: Request, pk: int) -> Response:
        check = workspace_check(by=self.user, workspace=self.get_object())
        return operation_answer(request, check)

    @described(
        "Retire a workspace",
        "It goes into the trash, from where it can be restored until `purge_at`. "
        "Unsubmitted work stops it: the workspace is then `ready` again, and its "
        "operation lists what was found. `unsubmitted` chooses otherwise.",
        ok=shapes.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[shapes.WorkspaceRetireQuery],
        examples=examples.RETIRE,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        query = self.read_query(shapes.WorkspaceRetireQuery)
        workspace = self.get_object()
        workspace_retire(
            by=self.user,
            workspace=workspace,
            unsubmitted=query["unsubmitted"],
            purge=query["purge"],
        )
        return self.settled(workspace, seconds=query["wait"])

    @described(
        "Restore a workspace",
        "From the trash, or from a retirement that is running or failed.",
        ok=shapes.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.RESTORE,
    )
    @action(methods=["post"], detail=True)
    def restore(self, request: Request, pk: int) -> Response:
        return self.settled_after(workspace_restore)

    @described(
        "Purge a workspace from the trash",
        ok=shapes.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.PURGE,
    )
    @action(methods=["post"], detail=True)
    def purge(self, request: Request, pk: int) -> Response:
        return self.settled_after(workspace_purge)

    @described(
        "Retry a failed workspace",
        ok=shapes.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.RETRY,
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        return self.settled_after(workspace_retry)
