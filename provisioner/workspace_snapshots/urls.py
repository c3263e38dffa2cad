"""URLs of snapshots of workspaces."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.web.navigation import Place, Section, administrators, register
from provisioner.workspace_snapshots import views
from provisioner.workspace_snapshots.api.views import (
    SnapshotPolicyViewSet,
    WorkspaceSnapshotViewSet,
)

register(
    Place(
        title="Workspace snapshots",
        section=Section.POLICIES,
        url_name="snapshot-policy-list",
        covers=("snapshot-policy-",),
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path(
        "policies/snapshots/", views.snapshot_policy_list, name="snapshot-policy-list"
    ),
    path(
        "policies/snapshots/<int:pk>/delete/",
        views.snapshot_policy_delete,
        name="snapshot-policy-delete",
    ),
    path(
        "workspaces/<int:pk>/snapshots/",
        views.workspace_snapshot_list,
        name="workspace-snapshot-list",
    ),
    path(
        "workspaces/<int:pk>/snapshots/<int:snapshot_pk>/",
        views.workspace_snapshot,
        name="workspace-snapshot",
    ),
    path(
        "workspaces/<int:pk>/snapshots/<int:snapshot_pk>/compare/",
        views.workspace_snapshot_compare,
        name="workspace-snapshot-compare",
    ),
    path(
        "workspaces/<int:pk>/snapshots/<int:snapshot_pk>/retry/",
        views.workspace_snapshot_retry,
        name="workspace-snapshot-retry",
    ),
    path(
        "workspaces/<int:pk>/snapshots/<int:snapshot_pk>/restore/",
        views.workspace_snapshot_restore,
        name="workspace-snapshot-restore",
    ),
]

api_routes = [
    Route("v1/snapshot-policies", SnapshotPolicyViewSet, "snapshot-policy"),
    Route("v1/workspaces", WorkspaceSnapshotViewSet, "workspace-snapshot"),
]
