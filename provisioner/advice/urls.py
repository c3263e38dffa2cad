"""URLs of advice on storage, and of the support matrix."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.advice import views
from provisioner.advice.api.views import StorageAdviceViewSet, SupportViewSet
from provisioner.api.routes import Route
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Storage advice",
        section=Section.PERFORCE,
        group=Group.ADVICE,
        url_name="storage-advice",
        rank=55,
        is_for=administrators,
        also=("protocol", "recommendation", "best practice", "NFS", "SAN"),
    ),
    Place(
        title="Support matrix",
        section=Section.PERFORCE,
        group=Group.ADVICE,
        url_name="support-matrix",
        rank=56,
        is_for=administrators,
        also=("versions", "releases", "compatibility"),
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/storage-advice/", views.storage_advice, name="storage-advice"),
    path("perforce/support/", views.support_matrix, name="support-matrix"),
]

api_routes = [
    Route("v1/storage-advice", StorageAdviceViewSet, "storage-advice"),
    Route("v1/support-matrix", SupportViewSet, "support-matrix"),
]
