"""URLs of transfer."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.transfer import views
from provisioner.transfer.api.views import WorkspaceTransferViewSet

urlpatterns: list[URLPattern] = [
    path(
        "workspaces/<int:pk>/transfer/",
        views.workspace_transfer,
        name="workspace-transfer",
    ),
    path(
        "workspaces/<int:pk>/transfer/abort/",
        views.workspace_transfer_abort,
        name="workspace-transfer-abort",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceTransferViewSet, "workspace-transfer")]
