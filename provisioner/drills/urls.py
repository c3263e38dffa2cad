"""URLs of disaster drills."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.drills import views
from provisioner.drills.api.views import DrillPlanViewSet, DrillViewSet
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Disaster drills",
        section=Section.PERFORCE,
        url_name="drill-list",
        covers=("drill-",),
        group=Group.SANDBOXES,
        rank=83,
        is_for=administrators,
        also=("recovery", "RPO", "RTO"),
    )
)

urlpatterns: list[URLPattern] = [
    path("drills/", views.drill_list, name="drill-list"),
    path("drills/servers/<int:pk>/", views.drill_plan_edit, name="drill-plan-edit"),
    path("drills/servers/<int:pk>/start/", views.drill_start, name="drill-start"),
]

api_routes = [
    Route("v1/drills", DrillViewSet, "drill"),
    Route("v1/drill-plans", DrillPlanViewSet, "drill-plan"),
]
