"""URLs of splits, of what holds snapshots, and of ceilings."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.storage import views
from provisioner.storage.api.views import (
    CeilingViewSet,
    HeldSnapshotViewSet,
    SpacePlanViewSet,
    VolumePolicyViewSet,
    WorkspaceSplitViewSet,
)
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Snapshots",
        section=Section.STORAGE,
        url_name="held-snapshot-list",
        covers=("held-snapshot-",),
        rank=25,
        is_for=administrators,
    ),
    Place(
        title="Full volumes",
        section=Section.STORAGE,
        url_name="filling-volume-list",
        rank=26,
        is_for=administrators,
    ),
    Place(
        title="Splits",
        section=Section.POLICIES,
        url_name="split-policy-list",
        covers=("split-policy-",),
        is_for=administrators,
    ),
    Place(
        title="Ceilings",
        section=Section.POLICIES,
        url_name="ceiling-list",
        covers=("ceiling-",),
        is_for=administrators,
    ),
    Place(
        title="Volumes",
        section=Section.POLICIES,
        url_name="volume-policy-list",
        covers=("volume-policy-",),
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("workspaces/<int:pk>/split/", views.workspace_split, name="workspace-split"),
    path(
        "workspaces/<int:pk>/split/stop/",
        views.workspace_split_stop,
        name="workspace-split-stop",
    ),
    path("storage/snapshots/", views.held_snapshot_list, name="held-snapshot-list"),
    path("storage/volumes/", views.filling_volume_list, name="filling-volume-list"),
    path("storage/free/", views.free_space, name="held-snapshot-free"),
    path("policies/splits/", views.split_policy_list, name="split-policy-list"),
    path(
        "policies/splits/<int:pk>/",
        views.split_policy_edit,
        name="split-policy-edit",
    ),
    path("policies/ceilings/", views.ceiling_list, name="ceiling-list"),
    path(
        "policies/ceilings/<int:pk>/<slug:purpose>/",
        views.ceiling_edit,
        name="ceiling-edit",
    ),
    path("policies/volumes/", views.volume_policy_list, name="volume-policy-list"),
    path(
        "policies/volumes/<int:pk>/",
        views.volume_policy_edit,
        name="volume-policy-edit",
    ),
    path(
        "policies/volumes/templates/<int:pk>/",
        views.volume_policy_template,
        name="volume-policy-template",
    ),
]

api_routes = [
    Route("v1/workspaces", WorkspaceSplitViewSet, "workspace-split"),
    Route("v1/storage/snapshots", HeldSnapshotViewSet, "held-snapshot"),
    Route("v1/storage/plan", SpacePlanViewSet, "space-plan"),
    Route("v1/storage/ceilings", CeilingViewSet, "ceiling"),
    Route("v1/storage/volume-policies", VolumePolicyViewSet, "volume-policy"),
]
