"""Addresses of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.workspaces.views import retiring, sharing

urlpatterns: list[URLPattern] = [
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
