"""URLs of syncs with the directory."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.directory import views
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Directory",
        section=Section.PEOPLE,
        url_name="directory-sync",
        covers=("directory-",),
        rank=40,
        is_for=administrators,
    )
)

urlpatterns: list[URLPattern] = [
    path("people/directory/", views.directory_sync, name="directory-sync"),
    path(
        "people/directory/sync/",
        views.directory_sync_start,
        name="directory-sync-start",
    ),
    path(
        "people/directory/<int:pk>/approve/",
        views.directory_sync_approval,
        name="directory-sync-approve",
    ),
]
