"""URLs of rescues."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.rescues import views
from provisioner.rescues.api import WorkspaceRescueViewSet

urlpatterns: list[URLPattern] = [
    path(
        "workspaces/<int:pk>/rescues/<int:rescue_pk>/",
        views.workspace_rescue,
        name="workspace-rescue",
    ),
    path(
        "workspaces/<int:pk>/rescues/<int:rescue_pk>/download/",
        views.workspace_rescue_download,
        name="workspace-rescue-download",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceRescueViewSet, "workspace-rescue")]
