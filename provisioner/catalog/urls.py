"""URLs of catalog."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.catalog.api.checks import TemplateCheckViewSet
from provisioner.catalog.api.snapshots import SnapshotViewSet
from provisioner.catalog.api.templates import TemplateViewSet
from provisioner.catalog.lists import TEMPLATES
from provisioner.catalog.views import (
    lifecycle,
    refresh,
    snapshots,
    templates,
)
from provisioner.web.lists.answers import list_page
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Templates",
        section=Section.TEMPLATES,
        url_name="template-list",
        # Mirrors have a place of their own, which only administrators have.
        covers=("template-", "snapshot-", "mirror"),
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

_of_a_template = [
    path("", templates.template_detail, name="template-detail"),
    path("edit/", templates.template_edit, name="template-edit"),
    path("build/", templates.template_build, name="template-build"),
    path("build/stop/", templates.template_build_stop, name="template-build-stop"),
    path("refresh/", refresh.template_refresh, name="template-refresh"),
    path("pin/", templates.pin, name="template-pin"),
    path("check/", templates.template_check, name="template-check"),
    path("rename/", lifecycle.template_rename, name="template-rename"),
    path("owner/", lifecycle.template_owner, name="template-owner"),
    path("archive/", lifecycle.template_archive, name="template-archive"),
    path("unarchive/", lifecycle.template_unarchive, name="template-unarchive"),
    path("delete/", lifecycle.template_delete, name="template-delete"),
    path("roll-back/", snapshots.template_roll_back, name="template-roll-back"),
]
_of_a_snapshot = [
    path("hold/", snapshots.snapshot_hold, name="snapshot-hold"),
    path("release/", snapshots.snapshot_release, name="snapshot-release"),
    path("withdraw/", snapshots.snapshot_withdraw, name="snapshot-withdraw"),
    path("describe/", snapshots.snapshot_describe, name="snapshot-describe"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("templates/", list_page(TEMPLATES, "catalog/list.html"), name="template-list"),
    path("templates/new/", templates.template_create, name="template-create"),
    path("templates/<int:pk>/", include(_of_a_template)),
    path("snapshots/<int:pk>/", include(_of_a_snapshot)),
    path("refreshes/", refresh.refresh_list, name="refresh-list"),
    path("refreshes/pause/", refresh.refresh_pause, name="refresh-pause"),
]

api_routes = [
    Route("v1/templates", TemplateViewSet, "template"),
    Route("v1/snapshots", SnapshotViewSet, "snapshot"),
    Route("v1/templates", TemplateCheckViewSet, "template-checks"),
]
