"""Workspace requests."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import origin
from provisioner.api.http import request_key
from provisioner.api.schema import REPLAYED, REQUEST_KEY, described
from provisioner.api.viewsets import chosen
from provisioner.api.waiting import WaitQuery
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.mirrors.queries import at_site
from provisioner.sites.models import Site
from provisioner.sites.models.sites import NEAREST
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspace_requests.api import examples
from provisioner.workspace_requests.api.shapes import WorkspaceCreateSerializer
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces import queries as workspace_queries
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.workspaces import WorkspaceLifeViewSet
from provisioner.workspaces.models import PUT_AWAY, Workspace
from provisioner.workspaces.refusals import WorkspaceFailed, WorkspaceRetired


class WorkspaceViewSet(WorkspaceLifeViewSet):
    """Workspaces: yours, or everybody's for administrators."""

    makes_workspaces = "create"

    @described(
        "Ask for a workspace",
        "With `wait` the answer is held until the workspace has settled: 201 when "
        "ready, 202 while it is being created, 409 `workspace_failed` if that "
        "failed. A member of a warm pool is claimed at once; `start` says whether, "
        "and if not, why. A request repeated with its key returns the same "
        "workspace, with `Idempotency-Replayed: true`.",
        body=WorkspaceCreateSerializer,
        ok=WorkspaceSerializer,
        status=202,
        also={201: WorkspaceSerializer},
        refused=[403, 409],
        parameters=[WaitQuery, REQUEST_KEY, REPLAYED],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        asked = self.read_body(WorkspaceCreateSerializer)
        template, site = self._template(asked), self._site(asked)
        asked_for = WorkspaceRequest(
            by=self.user,
            template=template,
            site=site,
            is_nearest=asked.get("site") == NEAREST,
            address=origin.current().ip,
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
        """Answer with a workspace that is ready or still being made.

        Raises: WorkspaceFailed, WorkspaceRetired.
        """
        is_repeated = workspace.was_asked_for_before
        if not is_repeated and (workspace.is_warm or not seconds):
            return self._at_hand(workspace)
        answer = self.settled(workspace, seconds=seconds)
        state = answer.data["state"]
        if state == Workspace.State.FAILED:
            raise WorkspaceFailed(
                name=workspace.name,
                reason=answer.data["status_message"],
                workspace=workspace.pk,
            )
        if state in PUT_AWAY:
            raise WorkspaceRetired(name=workspace.name, workspace=workspace.pk)
        if state == Workspace.State.READY:
            answer.status_code = 201
        if is_repeated:
            answer["Idempotency-Replayed"] = "true"
        return answer

    def _at_hand(self, workspace: Workspace) -> Response:
        """Answer with a workspace just claimed or created, without reading it again."""
        workspace_queries.read_newest_operation(workspace)
        status = 202 if workspace.is_moving else 201
        return self.shown(workspace, status=status, at="workspace-detail")

    def _template(self, asked: dict[str, Any]) -> Template:
        templates = templates_to_choose_from(self.user)
        if asked.get("site", NEAREST) != NEAREST:
            templates = templates.filter(at_site(asked["site"]))
        return chosen(
            templates,
            word="template",
            id_or_name=asked["template"],
            hint="Name its site.",
        )

    def _site(self, asked: dict[str, Any]) -> Site | None:
        return Site.objects.filter(name=asked.get("site")).first()

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
