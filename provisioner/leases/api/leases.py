"""The API of leases, and of the policies that they come from."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_visible_to
from provisioner.leases.actions.heartbeats import workspace_heartbeat
from provisioner.leases.actions.leases import (
    workspace_extend,
    workspace_keep,
    workspace_release,
)
from provisioner.leases.actions.policies import (
    lease_policy_preview,
    lease_policy_remove,
    lease_policy_remove_preview,
    lease_policy_save,
)
from provisioner.leases.api import examples, shapes
from provisioner.leases.models import LeasePolicy
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.viewsets import OfWorkspace


class WorkspaceLeaseViewSet(OfWorkspace):
    """How long a workspace lives."""

    @described(
        "Extend a workspace's lease",
        "By seconds from now, until a time, or by the default length.",
        body=shapes.LeaseExtendSerializer,
        ok=WorkspaceSerializer,
        refused=[403, 404, 409],
        examples=examples.EXTEND,
    )
    @action(methods=["post"], detail=True)
    def extend(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        asked = self.read_body(shapes.LeaseExtendSerializer)
        workspace_extend(by=self.user, workspace=workspace, **asked)
        return self.shown_now(workspace)

    @described(
        "Send a heartbeat for a workspace",
        "For workspaces requested with `heartbeat_seconds`. A refusal means that the "
        "workspace is being retired or is gone.",
        ok=WorkspaceSerializer,
        refused=[403, 404, 409],
        examples=examples.HEARTBEAT,
    )
    @action(methods=["post"], detail=True)
    def heartbeat(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        workspace_heartbeat(by=self.user, workspace=workspace)
        return self.shown_now(workspace)

    @described(
        "Keep a workspace without an end",
        "For administrators only if leases have a maximum.",
        body=shapes.LeaseKeepSerializer,
        ok=WorkspaceSerializer,
        refused=[403, 404, 409],
        examples=examples.KEEP,
    )
    @action(methods=["post"], detail=True)
    def keep(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        asked = self.read_body(shapes.LeaseKeepSerializer)
        workspace_keep(by=self.user, workspace=workspace, **asked)
        return self.shown_now(workspace)

    @described(
        "Release a kept workspace, so that it has a lease again",
        ok=WorkspaceSerializer,
        refused=[403, 404, 409],
    )
    @action(methods=["post"], detail=True)
    def release(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        workspace_release(by=self.user, workspace=workspace)
        return self.shown_now(workspace)


class LeasePolicyViewSet(ApiViewSet):
    """For administrators: how long workspaces live."""

    queryset = LeasePolicy.objects.none()
    serializer_class = shapes.LeasePolicySerializer

    def get_queryset(self) -> QuerySet[LeasePolicy]:
        permissions.require(permissions.can_manage_templates(self.user))
        return LeasePolicy.objects.select_related("template").order_by("pk")

    @described(
        "List lease policies",
        "Saved policies. Otherwise the built-in ones apply.",
        ok=shapes.LeasePolicySerializer,
        refused=[400, 403],
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a lease policy",
        ok=shapes.LeasePolicySerializer,
        refused=[403, 404],
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Save a lease policy",
        "For a template or for all; it replaces the current one. Running leases "
        "beyond a shorter maximum are shortened, but never to less than the first "
        "warning. With `preview` nothing changes.",
        body=shapes.LeasePolicySaveSerializer,
        ok=shapes.PolicyPreviewSerializer,
        refused=[403, 409],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(shapes.LeasePolicySaveSerializer)
        is_preview, seal = asked.pop("preview"), asked.pop("seal")
        asked["template"] = self._template(asked.pop("template", None))
        if is_preview:
            preview = lease_policy_preview(by=self.user, **asked)
        else:
            preview = lease_policy_save(by=self.user, seal=seal, **asked)
        return Response(shapes.PolicyPreviewSerializer(preview).data)

    def _template(self, id_or_name: int | str | None) -> Template | None:
        if id_or_name is None:
            return None
        return chosen(
            templates_visible_to(self.user),
            word="template",
            id_or_name=id_or_name,
            hint="Use its id.",
        )

    @described(
        "Remove a lease policy",
        "The more general policy then applies. With `preview` nothing changes.",
        ok=shapes.PolicyPreviewSerializer,
        refused=[400, 403, 404],
        parameters=[shapes.LeasePolicyRemoveQuery],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        query = self.read_query(shapes.LeasePolicyRemoveQuery)
        row = self.get_object()
        if query["preview"]:
            preview = lease_policy_remove_preview(by=self.user, row=row)
        else:
            preview = lease_policy_remove(by=self.user, row=row)
        return Response(shapes.PolicyPreviewSerializer(preview).data)
