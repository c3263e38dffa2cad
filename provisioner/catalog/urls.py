"""URLs of catalog."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.catalog.api.checks import TemplateCheckViewSet
from provisioner.catalog.api.snapshots import SnapshotViewSet
from provisioner.catalog.api.templates import TemplateViewSet
from provisioner.catalog.views import (
    lifecycle,
    refresh,
    snapshots,
    templates,
)
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Templates",
        section=Section.TEMPLATES,
        url_name="template-list",
        covers=("template-", "snapshot-"),
        rank=10,
    ),
    Place(
        title="Refreshes",
        section=Section.TEMPLATES,
        url_name="refresh-list",
        covers=("refresh-",),
        rank=20,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("templates/", templates.template_list, name="template-list"),
    path("refreshes/", refresh.refresh_list, name="refresh-list"),
    path("templates/new/", templates.template_create, name="template-create"),
    path("templates/<int:pk>/", templates.template_detail, name="template-detail"),
    path("templates/<int:pk>/edit/", templates.template_edit, name="template-edit"),
    path("templates/<int:pk>/build/", templates.template_build, name="template-build"),
    path(
        "templates/<int:pk>/build/stop/",
        templates.template_build_stop,
        name="template-build-stop",
    ),
    path(
        "templates/<int:pk>/refresh/",
        refresh.template_refresh,
        name="template-refresh",
    ),
    path("templates/<int:pk>/pin/", templates.pin, name="template-pin"),
    path("templates/<int:pk>/check/", templates.template_check, name="template-check"),
    path(
        "templates/<int:pk>/rename/",
        lifecycle.template_rename,
        name="template-rename",
    ),
    path(
        "templates/<int:pk>/owner/",
        lifecycle.template_owner,
        name="template-owner",
    ),
    path(
        "templates/<int:pk>/archive/",
        lifecycle.template_archive,
        name="template-archive",
    ),
    path(
        "templates/<int:pk>/unarchive/",
        lifecycle.template_unarchive,
        name="template-unarchive",
    ),
    path(
        "templates/<int:pk>/delete/",
        lifecycle.template_delete,
        name="template-delete",
    ),
    path(
        "templates/<int:pk>/roll-back/",
        snapshots.template_roll_back,
        name="template-roll-back",
    ),
    path("snapshots/<int:pk>/hold/", snapshots.snapshot_hold, name="snapshot-hold"),
    path(
        "snapshots/<int:pk>/release/",
        snapshots.snapshot_release,
        name="snapshot-release",
    ),
    path(
        "snapshots/<int:pk>/withdraw/",
        snapshots.snapshot_withdraw,
        name="snapshot-withdraw",
    ),
    path(
        "snapshots/<int:pk>/describe/",
        snapshots.snapshot_describe,
        name="snapshot-describe",
    ),
    path("refreshes/pause/", refresh.refresh_pause, name="refresh-pause"),
]

api_routes = [
    Route("v1/templates", TemplateViewSet, "template"),
    Route("v1/snapshots", SnapshotViewSet, "snapshot"),
    Route("v1/templates", TemplateCheckViewSet, "template-checks"),
]
