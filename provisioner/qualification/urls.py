"""URLs of runs."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from provisioner.api.routes import Route
from provisioner.qualification import views
from provisioner.qualification.api.views import QualificationRunViewSet
from provisioner.sandboxes.queries import may_have_sandboxes
from provisioner.web.navigation import Group, Place, Section, register

register(
    Place(
        title="Qualification",
        section=Section.PERFORCE,
        group=Group.MEASUREMENTS,
        url_name="qualification-list",
        covers=("qualification-",),
        rank=72,
        is_for=may_have_sandboxes,
        also=("benchmark", "baseline", "performance"),
    )
)

_of_a_run = [
    path("", views.run_detail, name="qualification-detail"),
    path("progress/", views.run_progress, name="qualification-progress"),
    path("report/", views.run_report, name="qualification-report"),
    path("figures.csv", views.run_csv, name="qualification-csv"),
    path("log.gz", views.run_log, name="qualification-log"),
    path("retry/", views.run_retry, name="qualification-retry"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("qualification/", views.run_list, name="qualification-list"),
    path("qualification/new/", views.run_create, name="qualification-create"),
    path(
        "qualification/baseline/",
        views.baseline_create,
        name="qualification-baseline",
    ),
    path("qualification/compare/", views.run_compare, name="qualification-compare"),
    path("qualification/<int:pk>/", include(_of_a_run)),
]

api_routes = [
    Route("v1/qualification-runs", QualificationRunViewSet, "qualification-run")
]
