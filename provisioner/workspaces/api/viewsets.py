"""The base of the viewsets of a workspace's actions."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import QuerySet
from rest_framework.response import Response

from provisioner.accounts.models import User
from provisioner.api.viewsets import ApiViewSet
from provisioner.api.waiting import WaitQuery, ask_again_unless, wait_while
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.models import MOVING, Workspace
from provisioner.workspaces.queries import (
    with_newest_operation,
    workspaces_visible_to,
)


class OfWorkspace(ApiViewSet):
    """The workspaces that the caller may see."""

    queryset = Workspace.objects.none()
    serializer_class = WorkspaceSerializer

    def get_queryset(self) -> QuerySet[Workspace]:
        visible = workspaces_visible_to(self.user).select_related("routed_to")
        return with_newest_operation(visible)

    def settled(
        self, workspace: Workspace, *, seconds: int, status: int = 202
    ) -> Response:
        """Answer with the workspace after the wait, and its URL."""
        was_held = wait_until_settled(workspace.pk, seconds=seconds, by=self.user)
        at = "workspace-detail" if status == 202 else ""
        return ask_again_unless(
            was_held, self.shown_now(workspace, status=status, at=at)
        )

    def settled_after(self, act: Callable[..., object]) -> Response:
        """Act on the workspace, and answer with it after the wait."""
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        act(by=self.user, workspace=workspace)
        return self.settled(workspace, seconds=seconds)


def wait_until_settled(workspace_id: int, *, seconds: float, by: User) -> bool:
    """Wait until no operation moves the workspace, or the time is over.

    Return False if too many requests wait already, so that this one did not.
    """
    moving = Workspace.objects.filter(pk=workspace_id, state__in=MOVING)
    return wait_while(moving, seconds=seconds, by=by)
