"""URLs of sandboxes."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.sandboxes import views
from provisioner.sandboxes.api.views import (
    P4dVersionViewSet,
    SandboxHostViewSet,
    SandboxPolicyViewSet,
    SandboxViewSet,
    ServerVolumesViewSet,
)
from provisioner.sandboxes.queries import may_have_sandboxes
from provisioner.web.navigation import Group, Place, Section, register

register(
    Place(
        title="Sandboxes",
        section=Section.PERFORCE,
        group=Group.SANDBOXES,
        url_name="sandbox-list",
        covers=("sandbox-", "server-volumes", "p4d-version-"),
        rank=80,
        is_for=may_have_sandboxes,
    )
)

_of_a_sandbox = [
    path("", views.sandbox_detail, name="sandbox-detail"),
    path("progress/", views.sandbox_progress, name="sandbox-progress"),
    path("extend/", views.sandbox_extend, name="sandbox-extend"),
    path("retire/", views.sandbox_retire, name="sandbox-retire"),
    path("start/", views.sandbox_start, name="sandbox-start"),
    path("retry/", views.sandbox_retry, name="sandbox-retry"),
]
_setup = [
    path("", views.sandbox_setup, name="sandbox-setup"),
    path("servers/<int:pk>/", views.server_volumes, name="server-volumes"),
    path("versions/new/", views.p4d_version_create, name="p4d-version-create"),
    path(
        "versions/<int:pk>/delete/",
        views.p4d_version_delete,
        name="p4d-version-delete",
    ),
    path("hosts/new/", views.sandbox_host_create, name="sandbox-host-create"),
    path(
        "hosts/<int:pk>/delete/",
        views.sandbox_host_delete,
        name="sandbox-host-delete",
    ),
    path("policies/new/", views.sandbox_policy_create, name="sandbox-policy-create"),
    path(
        "policies/<int:pk>/delete/",
        views.sandbox_policy_delete,
        name="sandbox-policy-delete",
    ),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("sandboxes/", views.sandbox_list, name="sandbox-list"),
    path("sandboxes/new/", views.sandbox_create, name="sandbox-create"),
    path("sandboxes/setup/", include(_setup)),
    path("sandboxes/<int:pk>/", include(_of_a_sandbox)),
]

api_routes = [
    Route("v1/sandboxes", SandboxViewSet, "sandbox"),
    Route("v1/server-volumes", ServerVolumesViewSet, "server-volumes"),
    Route("v1/p4d-versions", P4dVersionViewSet, "p4d-version"),
    Route("v1/sandbox-hosts", SandboxHostViewSet, "sandbox-host"),
    Route("v1/sandbox-policies", SandboxPolicyViewSet, "sandbox-policy"),
]
