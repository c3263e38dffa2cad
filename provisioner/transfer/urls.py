"""Addresses of transfer."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.transfer import views
from provisioner.transfer.api.views import WorkspaceCarryViewSet

urlpatterns: list[URLPattern] = [
    path(
        "workspaces/<int:pk>/forward/",
        views.workspace_forward,
        name="workspace-forward",
    ),
    path(
        "workspaces/<int:pk>/forward/abort/",
        views.workspace_forward_abort,
        name="workspace-forward-abort",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceCarryViewSet, "workspace-carry")]
