"""URLs of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, register
from provisioner.workspaces import views
from provisioner.workspaces.api.mounts import MountViewSet
from provisioner.workspaces.api.sharing import (
    WorkspaceOpenViewSet,
    WorkspaceShareViewSet,
)
from provisioner.workspaces.lists import RETIRED_WORKSPACES, TRASH

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

_of_a_workspace = [
    path("retire/", views.workspace_retire, name="workspace-retire"),
    path("purge/", views.workspace_purge, name="workspace-purge"),
    path("check/", views.workspace_check, name="workspace-check"),
    path("restore/", views.workspace_restore, name="workspace-restore"),
    path("retry/", views.workspace_retry, name="workspace-retry"),
    path("open/", views.workspace_open, name="workspace-open"),
    path("share/", views.workspace_share, name="workspace-share"),
    path("share/names/", views.workspace_share_names, name="workspace-share-names"),
    path(
        "share/<int:share_pk>/revoke/",
        views.workspace_unshare,
        name="workspace-unshare",
    ),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("trash/", list_page(TRASH, "workspaces/trash.html"), name="workspace-trash"),
    path(
        "retired/",
        list_page(RETIRED_WORKSPACES, "workspaces/retired.html"),
        name="workspace-retired-list",
    ),
    path("workspaces/<int:pk>/", include(_of_a_workspace)),
]

api_routes = [
    Route("v1/workspaces", WorkspaceOpenViewSet, "workspace-root"),
    Route("v1/sites/<slug:site>/mounts", MountViewSet, "mount"),
    Route(
        "v1/workspaces/<int:workspace_pk>/shares",
        WorkspaceShareViewSet,
        "workspace-share",
    ),
]
