"""The addresses under /api/v1/: each reads, or makes one call into the domain."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import Http404
from rest_framework.decorators import action
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from provisioner.accounts import permissions
from provisioner.accounts.api.throttling import WorkspaceThrottle
from provisioner.accounts.models import User
from provisioner.api import query_strings as q
from provisioner.api.http import AlwaysJson, request_key
from provisioner.api.pagination import Pages
from provisioner.api.schema import REPLAYED, REQUEST_KEY, described
from provisioner.catalog.actions.refresh import refresh_policy_save
from provisioner.catalog.actions.templates import (
    template_build,
    template_build_stop,
    template_create,
)
from provisioner.catalog.api.refresh_shapes import RefreshSaveSerializer
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.retention import pins_of_snapshot
from provisioner.dashboard.api import serializers as s
from provisioner.dashboard.api.waiting import ask_again_unless, wait_until_settled
from provisioner.engine.models import Operation
from provisioner.lib.refusals import (
    InvalidRequest,
    WorkspaceFailed,
    WorkspaceRetired,
)
from provisioner.sites.models import Site
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspaces import queries as workspace_queries
from provisioner.workspaces.actions.checking import workspace_look
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.models import Workspace

AnyModel = TypeVar("AnyModel", bound=Model)


class ApiViewSet(GenericViewSet[Any]):
    """What all have in common: JSON only, numbers as ids, pages, strict input."""

    content_negotiation_class = AlwaysJson
    pagination_class: type[BasePagination] | None = Pages
    lookup_value_converter = "int"
    makes_workspaces: str | None = None
    """The action whose requests are counted as those for workspaces."""

    @property
    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def get_throttles(self) -> list[BaseThrottle]:
        throttles = super().get_throttles()
        if self.action is None or self.action != self.makes_workspaces:
            return throttles
        return [*throttles, WorkspaceThrottle()]

    def read_body(self, shape: type[Serializer[Any]]) -> dict[str, Any]:
        return _validated(shape, self.request.data)

    def read_query(self, shape: type[Serializer[Any]]) -> dict[str, Any]:
        # A plain dict: a QueryDict would be taken for an HTML form, where "" is absent.
        return _validated(shape, self.request.query_params.dict())

    def page_of(self, queryset: QuerySet[Any]) -> Response:
        page = self.paginate_queryset(queryset)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class ShortListViewSet(ApiViewSet):
    """What there are few of, so that a list has all of them and no pages."""

    pagination_class = None


def _validated(shape: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    validated: dict[str, Any] = serializer.validated_data
    return validated


def _of_template(value: str) -> Q:
    """Match rows of the template with this id or name."""
    if value.isascii() and value.isdecimal():
        return Q(template_id=int(value))
    return Q(template__name=value)


def chosen(
    rows: QuerySet[AnyModel], *, word: str, id_or_name: int | str, hint: str = ""
) -> AnyModel:
    """Return the one row that was meant.

    Raises: InvalidRequest where there is none, or more than one of that name.
    """
    field = "pk" if isinstance(id_or_name, int) else "name"
    found = list(rows.filter(**{field: id_or_name})[:2])
    if not found:
        raise InvalidRequest(f"There is no {word} “{id_or_name}”.")
    if len(found) > 1:
        raise InvalidRequest(f"There is more than one {word} “{id_or_name}”. {hint}")
    return found[0]


class TemplateViewSet(ApiViewSet):
    """What workspaces are cloned from."""

    queryset = Template.objects.none()
    serializer_class = s.TemplateSerializer

    def get_queryset(self) -> QuerySet[Template]:
        return workspace_queries.templates_visible_to(self.user)

    @described(
        "List templates",
        ok=s.TemplateSerializer,
        refused=[400],
        parameters=[q.TemplateListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(q.TemplateListQuery)
        templates = self.get_queryset()
        if "name" in query:
            templates = templates.filter(name=query["name"])
        if "site" in query:
            templates = templates.filter(site__name=query["site"])
        return self.page_of(templates)

    @described("Look at a template", ok=s.TemplateSerializer, refused=[404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @described(
        "Define a template",
        "For administrators. Nothing is made on ONTAP or Perforce before its build.",
        body=s.TemplateCreateSerializer,
        ok=s.TemplateSerializer,
        status=201,
        refused=[403, 409],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(s.TemplateCreateSerializer)
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        template = template_create(by=self.user, site=site, **asked)
        body = self.get_serializer(self.get_queryset().get(pk=template.pk)).data
        where = reverse("api:template-detail", [template.pk], request=request)
        return Response(body, status=201, headers={"Location": where})

    @described(
        "Build a template",
        "For administrators. The answer is the operation to follow.",
        body=s.TemplateBuildSerializer,
        ok=s.OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        operation_id="templates_build",
    )
    @action(methods=["post"], detail=True)
    def build(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(s.TemplateBuildSerializer)
        operation = template_build(
            by=self.user,
            template=template,
            change=asked["change"],
            is_clean=asked["clean"],
            paths=asked["paths"],
        )
        operation = workspace_queries.operations_visible_to(self.user).get(
            pk=operation.pk
        )
        where = reverse("api:operation-detail", [operation.pk], request=request)
        return Response(
            s.OperationSerializer(operation).data,
            status=202,
            headers={"Location": where},
        )

    @described(
        "Stop the build under way",
        "For administrators. It publishes nothing; what was published stays.",
        ok=s.OperationSerializer,
        refused=[403, 404, 409],
        operation_id="templates_build_stop",
    )
    @action(methods=["post"], detail=True, url_path="build/stop")
    def build_stop(self, request: Request, pk: int) -> Response:
        operation = template_build_stop(by=self.user, template=self.get_object())
        operation = workspace_queries.operations_visible_to(self.user).get(
            pk=operation.pk
        )
        return Response(s.OperationSerializer(operation).data)

    @described(
        "Say when a template is built by itself",
        "For administrators: never, after changes, or on a schedule; always to the "
        "newest change under its view, and if there is one since its newest snapshot.",
        body=RefreshSaveSerializer,
        ok=s.TemplateSerializer,
        refused=[403, 404, 409],
        operation_id="templates_refresh",
    )
    @action(methods=["post"], detail=True)
    def refresh(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(RefreshSaveSerializer)
        refresh_policy_save(by=self.user, template=template, **asked)
        return Response(self.get_serializer(self.get_object()).data)


class SnapshotViewSet(ApiViewSet):
    """Published snapshots of templates."""

    queryset = Snapshot.objects.none()
    serializer_class = s.SnapshotSerializer

    def get_queryset(self) -> QuerySet[Snapshot]:
        return workspace_queries.snapshots_visible_to(self.user)

    @described(
        "List snapshots",
        ok=s.SnapshotSerializer,
        refused=[400],
        parameters=[q.SnapshotListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(q.SnapshotListQuery)
        snapshots = self.get_queryset()
        if "template" in query:
            snapshots = snapshots.filter(_of_template(query["template"]))
        return self.page_of(snapshots)

    @described("Look at a snapshot", ok=s.SnapshotSerializer, refused=[404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @described(
        "Say what keeps a snapshot",
        ok=s.PinsSerializer,
        refused=[404],
        operation_id="snapshots_pins",
    )
    @action(methods=["get"], detail=True)
    def pins(self, request: Request, pk: int) -> Response:
        pins = pins_of_snapshot(self.get_object())
        if pins is None:
            raise Http404
        shown = pins.workspaces if self.user.is_administrator else None
        return Response(
            {
                "is_needed": pins.is_needed,
                "reasons": pins.reasons,
                "workspaces_count": pins.workspaces_number,
                "workspaces": shown
                and s.PinningWorkspaceSerializer(shown, many=True).data,
            }
        )


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
        parameters=[q.WorkspaceListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(q.WorkspaceListQuery)
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
        parameters=[q.WaitQuery, REQUEST_KEY, REPLAYED],
    )
    def create(self, request: Request) -> Response:
        seconds = self.read_query(q.WaitQuery)["wait"]
        asked = self.read_body(s.WorkspaceCreateSerializer)
        template = self._template(asked)
        workspace = workspace_create(
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
        return self._made(workspace, seconds=seconds)

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
        templates = workspace_queries.templates_to_choose_from(self.user)
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
        parameters=[q.WaitQuery],
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(q.WaitQuery)["wait"]
        workspace = self.get_object()
        if not seconds:
            return Response(self.get_serializer(workspace).data)
        return self._settled(workspace.pk, seconds=seconds, status=200)

    @described(
        "Look what in a workspace is not submitted",
        "Nothing is changed by that. The answer is the operation to follow: its "
        "`findings` list what there is by kind, with `counts` and bytes; `blockers` "
        "are sentences that say what stands against bringing the work forward.",
        ok=s.OperationSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        operation_id="workspaces_look",
    )
    @action(methods=["post"], detail=True)
    def look(self, request: Request, pk: int) -> Response:
        look = workspace_look(by=self.user, workspace=self.get_object())
        look = workspace_queries.operations_visible_to(self.user).get(pk=look.pk)
        where = reverse("api:operation-detail", [look.pk], request=request)
        body = s.OperationSerializer(look).data
        return Response(body, status=202, headers={"Location": where})

    @described(
        "Retire a workspace",
        "It goes into the trash, from where it can be restored until `purge_at`. "
        "Unsaved work stops it, unless `unsaved` says what becomes of that: the "
        "workspace is then `ready` again, and its operation lists what was found.",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[q.WorkspaceRetireQuery],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        query = self.read_query(q.WorkspaceRetireQuery)
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
        parameters=[q.WaitQuery],
        operation_id="workspaces_restore",
    )
    @action(methods=["post"], detail=True)
    def restore(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(q.WaitQuery)["wait"]
        workspace = self.get_object()
        workspace_restore(by=self.user, workspace=workspace)
        return self._settled(workspace.pk, seconds=seconds, status=202)

    @described(
        "Destroy for good what is in the trash",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[q.WaitQuery],
        operation_id="workspaces_purge",
    )
    @action(methods=["post"], detail=True)
    def purge(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(q.WaitQuery)["wait"]
        workspace = self.get_object()
        workspace_purge(by=self.user, workspace=workspace)
        return self._settled(workspace.pk, seconds=seconds, status=202)

    @described(
        "Go on with a workspace that failed",
        ok=s.WorkspaceSerializer,
        status=202,
        refused=[400, 403, 404, 409],
        parameters=[q.WaitQuery],
        operation_id="workspaces_retry",
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(q.WaitQuery)["wait"]
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


class OperationViewSet(ApiViewSet):
    """What was asked for and takes a while, step by step."""

    queryset = Operation.objects.none()
    serializer_class = s.OperationSerializer

    def get_queryset(self) -> QuerySet[Operation]:
        return workspace_queries.operations_visible_to(self.user)

    @described(
        "List operations",
        ok=s.OperationSerializer,
        refused=[400],
        parameters=[q.OperationListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(q.OperationListQuery)
        return self.page_of(self.get_queryset().filter(**query))

    @described("Look at an operation", ok=s.OperationSerializer, refused=[404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)


class NothingHere(APIView):
    """The answer to every other address below /api/."""

    schema = None
    content_negotiation_class = AlwaysJson

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
