"""Addresses of drift."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.drift import views
from provisioner.drift.api import FindingViewSet

urlpatterns: list[URLPattern] = [
    path("audit/", views.audit, name="audit"),
    path("audit/run/", views.audit_run, name="audit-run"),
    path("audit/adopt/", views.audit_adopt, name="audit-adopt"),
    path("audit/<int:pk>/", views.finding_detail, name="finding-detail"),
]

api_routes = [Route("v1/findings", FindingViewSet, "finding")]
