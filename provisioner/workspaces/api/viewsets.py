"""The base of the viewsets of a workspace's actions."""

from __future__ import annotations

from django.db.models import QuerySet

from provisioner.api.viewsets import ApiViewSet
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.models import Workspace
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
