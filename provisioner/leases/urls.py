"""URLs of leases."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.leases import views
from provisioner.leases.api.abandoned import AbandonedViewSet
from provisioner.leases.api.leases import LeasePolicyViewSet, WorkspaceLeaseViewSet
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Abandoned",
        section=Section.WORKSPACES,
        url_name="abandoned-list",
        covers=("abandoned-",),
        rank=50,
        is_for=administrators,
    ),
    Place(
        title="Leases",
        section=Section.POLICIES,
        url_name="lease-policy-list",
        covers=("lease-policy-",),
        rank=10,
        is_for=administrators,
    ),
)

_of_a_workspace = [
    path("extend/", views.workspace_extend, name="workspace-extend"),
    path("keep/", views.workspace_keep, name="workspace-keep"),
    path("release/", views.workspace_release, name="workspace-release"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("workspaces/<int:pk>/", include(_of_a_workspace)),
    path("lease-policies/", views.lease_policy_list, name="lease-policy-list"),
    path("lease-policies/edit/", views.lease_policy_edit, name="lease-policy-edit"),
    path(
        "lease-policies/<int:pk>/remove/",
        views.lease_policy_remove,
        name="lease-policy-remove",
    ),
    path("abandoned/", views.abandoned_list, name="abandoned-list"),
    path("abandoned/progress/", views.abandoned_progress, name="abandoned-progress"),
]

api_routes = [
    Route("v1/workspaces", WorkspaceLeaseViewSet, "workspace-lease"),
    Route("v1/lease-policies", LeasePolicyViewSet, "lease-policy"),
    Route("v1/abandoned", AbandonedViewSet, "abandoned"),
]
