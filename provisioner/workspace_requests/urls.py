"""URLs of workspace requests."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.workspace_requests import views
from provisioner.workspace_requests.api.workspaces import WorkspaceViewSet

urlpatterns: list[URLPattern] = [
    path(
        "templates/<int:template_pk>/get/",
        views.workspace_create,
        name="workspace-create",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceViewSet, "workspace")]
