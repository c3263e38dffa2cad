"""The addresses under /api/v1/: each reads, or makes one call into the domain."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.api.http import request_key
from provisioner.api.schema import REPLAYED, REQUEST_KEY, described
from provisioner.api.viewsets import ApiViewSet, _of_template, chosen
from provisioner.api.waiting import WaitQuery, ask_again_unless
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.engine.queries import operations_visible_to
from provisioner.leases.api import examples
from provisioner.leases.api import workspaces as s
from provisioner.leases.api.workspaces import WorkspaceListQuery, WorkspaceRetireQuery
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces import queries as workspace_queries
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.api.waiting import wait_until_settled
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import WorkspaceFailed, WorkspaceRetired


class WorkspaceViewSet(ApiViewSet):
    """Workspaces: yours, or everybody's for administrators."""

    queryset = Workspace.objects.none()
    serializer_class = s.WorkspaceSerializer
    makes_workspaces = "create"

    def get_queryset(self) -> QuerySet[Workspace]:
        return workspace_queries.with_newest_operation(
            workspace_queries.workspaces_visible_to(self.user)
        )

    @described(
        "List workspaces",
        "Retired ones too, unless `state` says otherwise.",
        ok=s.WorkspaceSerializer,
        refused=[400],
        parameters=[WorkspaceListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(WorkspaceListQuery)
        workspaces = self.get_queryset()
        if "state" in query:
            workspaces = workspaces.filter(state=query["state"])
        if "template" in query:
            workspaces = workspaces.filter(_of_template(query["template"]))
        if "name" in query:
            workspaces = workspaces.filter(name=query["name"])
        if "site" in query:
            workspaces = workspaces.filter(site__name=query["site"])
        if "owner" in query:
            workspaces = workspaces.filter(owner__username=query["owner"])
        if not query["retired"]:
            workspaces = workspaces.exclude(state=Workspace.State.RETIRED)
        return self.page_of(workspaces)

    @described(
        "Ask for a workspace",
        "With `wait` the answer is held until the workspace has settled: 201 when it "
        "is ready, 202 while it is still being made, 409 `workspace_failed` where it "
        "could not be. One that lies ready in a warm pool is handed out at once; "
        "`start` says whether, and if not, why. A request repeated with its key "
        "answers with the same workspace as it is then; `Idempotency-Replayed` says "
        "so.",
        body=s.WorkspaceCreateSerializer,
        ok=s.WorkspaceSerializer,
        status=202,
        also={201: s.WorkspaceSerializer},
        refused=[403, 409],
        parameters=[WaitQuery, REQUEST_KEY, REPLAYED],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        asked = self.read_body(s.WorkspaceCreateSerializer)
        template = self._template(asked)
        asked_for = WorkspaceRequest(
            by=self.user,
            template=template,
            snapshot=self._snapshot(asked, template=template),
            quality=asked.get("quality", ""),
            name=asked.get("name", ""),
            purpose=asked["purpose"],
            wants_reconcile=asked["reconcile"],
            lease_seconds=asked.get("lease"),
            heartbeat_seconds=asked.get("heartbeat_seconds"),
            request_key=request_key(request),
        )
        return self._made(workspace_create(asked_for), seconds=seconds)

    def _made(self, workspace: Workspace, *, seconds: int) -> Response:
        """Answer with a workspace that can be worked in, or is still being made.

        Raises: WorkspaceFailed, WorkspaceRetired.
        """
        is_repeated = workspace.was_asked_for_before
        if not is_repeated and (workspace.is_warm or not seconds):
            return self._at_hand(workspace)
        answer = self._settled(workspace.pk, seconds=seconds, status=202)
        state = answer.data["state"]
        if state == Workspace.State.FAILED:
            raise WorkspaceFailed(
                name=workspace.name,
                reason=answer.data["status_message"],
                workspace=workspace.pk,
            )
        if state in workspace_queries.GONE:
            raise WorkspaceRetired(name=workspace.name, workspace=workspace.pk)
        if state == Workspace.State.READY:
            answer.status_code = 201
        if is_repeated:
            answer["Idempotency-Replayed"] = "true"
        return answer

    def _at_hand(self, workspace: Workspace) -> Response:
        """Answer with what was got, or begun, just now: all around it is at hand."""
        workspace_queries.read_newest_operation(workspace)
        where = reverse("api:workspace-detail", [workspace.pk], request=self.request)
        body = self.get_serializer(workspace).data
        status = 202 if workspace.is_moving else 201
        return Response(body, status=status, headers={"Location": where})

    def _template(self, asked: dict[str, Any]) -> Template:
        templates = templates_to_choose_from(self.user)
        if "site" in asked:
            templates = templates.filter(site__name=asked["site"])
        return chosen(
            templates,
            word="template",
            id_or_name=asked["template"],
            hint="Say at which site.",
        )

    def _snapshot(
        self, asked: dict[str, Any], *, template: Template
    ) -> Snapshot | None:
        if "snapshot" not in asked:
            return None
        return chosen(
            template.snapshots.all(),
            word=f"snapshot of {template.name}",
            id_or_name=asked["snapshot"],
        )

    @described(
        "Look at a workspace",
        ok=s.WorkspaceSerializer,
        also={202: s.WorkspaceSerializer},
        refused=[400, 404],
        parameters=[WaitQuery],
        examples=examples.POLL,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        if not seconds:
            return Response(self.get_serializer(workspace).data)
        return self._settled(workspace.pk, seconds=seconds, status=200)

    @described(
        "Check a workspace for unsubmitted work",
        "This changes nothing. The answer is the operation to follow: its `findings` "
        "list what there is by kind, with `counts` and bytes; `blockers` are sentences "
        "that say why the work cannot be transferred.",
        ok=OperationSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        operation_id="workspaces_check",
    )
    @action(methods=["post"], detail=True)
    def check(self, request: Request, pk: int) -> Response:
        check = workspace_check(by=self.user, workspace=self.get_object())
        operation = operations_visible_to(self.user).get(pk=check.pk)
        where = reverse("api:operation-detail", [operation.pk], request=request)
        body = OperationSerializer(operation).data
        return Response(body, status=202, headers={"Location": where})

    @described(
        "Retire a workspace",
        "It goes into the trash, from where it can be restored until `purge_at`. "
        "Unsaved work stops it, unless `unsaved` says what becomes of that: the "
        "workspace is then `ready` again, and its operation lists what was found.",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WorkspaceRetireQuery],
        examples=examples.RETIRE,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        query = self.read_query(WorkspaceRetireQuery)
        workspace = self.get_object()
        workspace_retire(
            by=self.user,
            workspace=workspace,
            unsaved=query["unsaved"],
            purge=query["purge"],
        )
        return self._settled(workspace.pk, seconds=query["wait"], status=202)

    @described(
        "Bring a workspace back",
        "From the trash, or out of a retirement that is under way or failed.",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        operation_id="workspaces_restore",
    )
    @action(methods=["post"], detail=True)
    def restore(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        workspace_restore(by=self.user, workspace=workspace)
        return self._settled(workspace.pk, seconds=seconds, status=202)

    @described(
        "Destroy for good what is in the trash",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        operation_id="workspaces_purge",
    )
    @action(methods=["post"], detail=True)
    def purge(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        workspace_purge(by=self.user, workspace=workspace)
        return self._settled(workspace.pk, seconds=seconds, status=202)

    @described(
        "Go on with a workspace that failed",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[WaitQuery],
        operation_id="workspaces_retry",
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        workspace_retry(by=self.user, workspace=workspace)
        return self._settled(workspace.pk, seconds=seconds, status=202)

    def _settled(self, workspace_id: int, *, seconds: int, status: int) -> Response:
        """Answer with the workspace as it is after the wait, and where it is."""
        was_held = wait_until_settled(workspace_id, seconds=seconds, by=self.user)
        workspace = self.get_queryset().get(pk=workspace_id)
        body = self.get_serializer(workspace).data
        where = reverse("api:workspace-detail", [workspace_id], request=self.request)
        headers = {"Location": where} if status == 202 else {}
        answer = Response(body, status=status, headers=headers)
        return ask_again_unless(was_held, answer)
