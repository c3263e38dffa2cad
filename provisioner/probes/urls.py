"""URLs of probes, moments and comparisons."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.probes import views
from provisioner.probes.api.views import (
    ComparisonViewSet,
    MomentViewSet,
    ProbePlanViewSet,
    ProbeRoundViewSet,
    ProbeTimeViewSet,
    ProbeWeekViewSet,
    ReportMailViewSet,
)
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Probes",
        section=Section.PERFORCE,
        group=Group.MEASUREMENTS,
        url_name="probe-list",
        covers=("probe-",),
        rank=70,
        is_for=administrators,
    ),
    Place(
        title="Did it help?",
        section=Section.PERFORCE,
        group=Group.MEASUREMENTS,
        url_name="comparison",
        covers=("moment-",),
        rank=71,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/probes/", views.probe_list, name="probe-list"),
    path("perforce/probes/rounds/", views.probe_rounds, name="probe-rounds"),
    path("perforce/probes/<int:pk>/", views.probe_plan_edit, name="probe-plan-edit"),
    path("perforce/comparison/", views.comparison, name="comparison"),
    path("perforce/moments/", views.moment_list, name="moment-list"),
    path(
        "perforce/moments/<int:pk>/delete/", views.moment_delete, name="moment-delete"
    ),
]

api_routes = [
    Route("v1/probes", ProbePlanViewSet, "probe-plan"),
    Route("v1/probes/times", ProbeTimeViewSet, "probe-time"),
    Route("v1/probes/rounds", ProbeRoundViewSet, "probe-round"),
    Route("v1/probes/weeks", ProbeWeekViewSet, "probe-week"),
    Route("v1/moments", MomentViewSet, "moment"),
    Route("v1/report-mails", ReportMailViewSet, "report-mail"),
    Route("v1/comparison", ComparisonViewSet, "comparison"),
]
