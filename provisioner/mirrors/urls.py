"""URLs of mirrors."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.mirrors import views
from provisioner.mirrors.api.views import MirrorViewSet
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Mirrors",
        section=Section.STORAGE,
        url_name="mirror-list",
        covers=("mirror-",),
        rank=30,
        is_for=administrators,
    )
)

_of_a_mirror = [
    path("", views.mirror_detail, name="mirror-detail"),
    path("progress/", views.mirror_progress, name="mirror-progress"),
    path("edit/", views.mirror_edit, name="mirror-edit"),
    path("transfer/", views.mirror_transfer, name="mirror-transfer"),
    path("retry/", views.mirror_retry, name="mirror-retry"),
    path("delete/", views.mirror_delete, name="mirror-delete"),
    path("promote/", views.mirror_promote, name="mirror-promote"),
    path("re-establish/", views.mirror_reestablish, name="mirror-reestablish"),
    path("give-up/", views.mirror_give_up, name="mirror-give-up"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("mirrors/", views.mirror_list, name="mirror-list"),
    path("mirrors/new/", views.mirror_create, name="mirror-create"),
    path("mirrors/<int:pk>/", include(_of_a_mirror)),
]

api_routes = [Route("v1/mirrors", MirrorViewSet, "mirror")]
