"""URLs of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.web.navigation import Place, Section, register
from provisioner.workspaces.api.sharing import (
    WorkspaceOpenViewSet,
    WorkspaceShareViewSet,
)
from provisioner.workspaces.views import checking, retiring, sharing

register(
    Place(
        title="Trash",
        section=Section.WORKSPACES,
        url_name="workspace-trash",
        covers=("workspace-purge",),
        rank=60,
    ),
    Place(
        title="History",
        section=Section.WORKSPACES,
        url_name="workspace-retired-list",
        rank=70,
    ),
)

urlpatterns: list[URLPattern] = [
    path("trash/", retiring.workspace_trash, name="workspace-trash"),
    path("retired/", retiring.workspace_retired_list, name="workspace-retired-list"),
    path(
        "workspaces/<int:pk>/retire/",
        retiring.workspace_retire,
        name="workspace-retire",
    ),
    path(
        "workspaces/<int:pk>/purge/", retiring.workspace_purge, name="workspace-purge"
    ),
    path(
        "workspaces/<int:pk>/check/", checking.workspace_check, name="workspace-check"
    ),
    path(
        "workspaces/<int:pk>/restore/",
        retiring.workspace_restore,
        name="workspace-restore",
    ),
    path(
        "workspaces/<int:pk>/retry/", retiring.workspace_retry, name="workspace-retry"
    ),
    path("workspaces/<int:pk>/open/", sharing.workspace_open, name="workspace-open"),
    path("workspaces/<int:pk>/share/", sharing.workspace_share, name="workspace-share"),
    path(
        "workspaces/<int:pk>/share/names/",
        sharing.workspace_share_names,
        name="workspace-share-names",
    ),
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
