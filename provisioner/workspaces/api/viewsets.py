"""The base of the viewsets of a workspace's actions."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.api.viewsets import ApiViewSet
from provisioner.api.waiting import wait_while
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
        return with_newest_operation(workspaces_visible_to(self.user))


def wait_until_settled(workspace_id: int, *, seconds: float, by: User) -> bool:
    """Wait until no operation moves the workspace, or the time is over.

    Return False if too many requests wait already, so that this one did not.
    """
    moving = Workspace.objects.filter(pk=workspace_id, state__in=MOVING)
    return wait_while(moving, seconds=seconds, by=by)
