"""Addresses of drift."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.drift import views as drift_views
from provisioner.drift.api import FindingViewSet

urlpatterns: list[URLPattern] = [
    path("audit/", drift_views.audit, name="audit"),
    path("audit/run/", drift_views.audit_run, name="audit-run"),
    path("audit/adopt/", drift_views.audit_adopt, name="audit-adopt"),
    path("audit/<int:pk>/", drift_views.finding_detail, name="finding-detail"),
]

api_routes = [Route("v1/findings", FindingViewSet, "finding")]
