"""URLs of clones of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.cloning import views
from provisioner.cloning.api.views import WorkspaceCloneViewSet

urlpatterns: list[URLPattern] = [
    path(
        "workspaces/<int:pk>/clone/",
        views.workspace_clone_create,
        name="workspace-clone",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceCloneViewSet, "workspace-cloning")]
