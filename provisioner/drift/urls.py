"""URLs of drift."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.drift import views
from provisioner.drift.api import FindingViewSet
from provisioner.drift.queries import open_findings_number
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Drift",
        section=Section.ACTIVITY,
        url_name="drift",
        covers=("drift-", "finding-"),
        rank=30,
        is_for=administrators,
        waits=open_findings_number,
    )
)

urlpatterns: list[URLPattern] = [
    path("drift/", views.drift, name="drift"),
    path("drift/check/", views.drift_check, name="drift-check"),
    path("drift/adopt/", views.drift_adopt, name="drift-adopt"),
    path("drift/<int:pk>/", views.finding_detail, name="finding-detail"),
]

api_routes = [Route("v1/findings", FindingViewSet, "finding")]
