"""URLs of deduplication, and of data reduction."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.efficiency import views
from provisioner.efficiency.api.views import (
    DataReductionViewSet,
    DedupePlanViewSet,
    DedupeRunViewSet,
)
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Data reduction",
        section=Section.STORAGE,
        url_name="data-reduction-list",
        rank=30,
        is_for=administrators,
    ),
    Place(
        title="Deduplication",
        section=Section.STORAGE,
        url_name="dedupe-run-list",
        covers=("dedupe-",),
        rank=31,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("storage/reduction/", views.reduction_list, name="data-reduction-list"),
    path("storage/deduplication/", views.dedupe_run_list, name="dedupe-run-list"),
    path(
        "storage/deduplication/<int:pk>/",
        views.dedupe_plan_edit,
        name="dedupe-plan-edit",
    ),
]

api_routes = [
    Route("v1/deduplication/plans", DedupePlanViewSet, "dedupe-plan"),
    Route("v1/deduplication/runs", DedupeRunViewSet, "dedupe-run"),
    Route("v1/storage/reduction", DataReductionViewSet, "data-reduction"),
]
