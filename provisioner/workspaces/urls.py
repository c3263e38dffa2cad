"""Addresses of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.dashboard.views import checking, workspaces
from provisioner.workspaces.api.shares import (
    WorkspaceOpenViewSet,
    WorkspaceShareViewSet,
)
from provisioner.workspaces.views import sharing

urlpatterns: list[URLPattern] = [
    path("", workspaces.workspace_list, name="workspace-list"),
    path("team/", workspaces.workspace_team_list, name="workspace-team-list"),
    path("trash/", workspaces.workspace_trash, name="workspace-trash"),
    path("retired/", workspaces.workspace_retired_list, name="workspace-retired-list"),
    path(
        "templates/<int:template_pk>/get/",
        workspaces.workspace_create,
        name="workspace-create",
    ),
    path("workspaces/<int:pk>/", workspaces.workspace_detail, name="workspace-detail"),
    path(
        "workspaces/<int:pk>/retire/",
        workspaces.workspace_retire,
        name="workspace-retire",
    ),
    path(
        "workspaces/<int:pk>/restore/",
        workspaces.workspace_restore,
        name="workspace-restore",
    ),
    path(
        "workspaces/<int:pk>/purge/", workspaces.workspace_purge, name="workspace-purge"
    ),
    path(
        "workspaces/<int:pk>/retry/", workspaces.workspace_retry, name="workspace-retry"
    ),
    path("workspaces/<int:pk>/look/", checking.workspace_look, name="workspace-look"),
    path("workspaces/<int:pk>/open/", sharing.workspace_open, name="workspace-open"),
    path("workspaces/<int:pk>/share/", sharing.workspace_share, name="workspace-share"),
    path(
        "workspaces/<int:pk>/share/<int:share_pk>/revoke/",
        sharing.workspace_unshare,
        name="workspace-unshare",
    ),
]

api_routes = [
    Route("v1/workspaces", WorkspaceOpenViewSet, "workspace-root"),
    Route(
        "v1/workspaces/<int:workspace_pk>/shares",
        WorkspaceShareViewSet,
        "workspace-share",
    ),
]
