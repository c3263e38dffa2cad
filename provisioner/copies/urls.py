"""URLs of copies."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from provisioner.api.routes import Route
from provisioner.copies import views
from provisioner.copies.api.views import CopyRuleViewSet, WorkspaceCopyViewSet

urlpatterns: list[URLPattern | URLResolver] = [
    path("mirrors/<int:pk>/copies/", views.copy_rule, name="mirror-copies"),
    path(
        "mirrors/<int:pk>/copies/off/",
        views.copy_rule_delete,
        name="mirror-copies-off",
    ),
    path(
        "workspaces/<int:pk>/copies/<int:copy_pk>/transfer/",
        views.copy_transfer,
        name="workspace-copy-now",
    ),
]

api_routes = [
    Route("v1/copy-rules", CopyRuleViewSet, "copy-rule"),
    Route("v1/workspace-copies", WorkspaceCopyViewSet, "workspace-copy"),
]
