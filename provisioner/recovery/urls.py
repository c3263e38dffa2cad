"""URLs of recoveries."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.recovery import views
from provisioner.recovery.api.views import WorkspaceRecoveryViewSet

urlpatterns: list[URLPattern] = [
    path(
        "workspaces/<int:pk>/copies/<int:copy_pk>/restore/",
        views.workspace_recovery,
        name="workspace-copy-restore",
    ),
]

api_routes = [Route("v1/workspaces", WorkspaceRecoveryViewSet, "workspace-recovery")]
