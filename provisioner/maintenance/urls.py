"""URLs of maintenance."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.maintenance import views
from provisioner.maintenance.api import MaintenanceViewSet
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Maintenance",
        section=Section.POLICIES,
        url_name="maintenance-list",
        covers=("maintenance-",),
        rank=80,
        is_for=administrators,
    )
)

urlpatterns: list[URLPattern] = [
    path("maintenance/", views.maintenance_list, name="maintenance-list"),
    path(
        "maintenance/<int:pk>/withdraw/",
        views.maintenance_withdraw,
        name="maintenance-withdraw",
    ),
]

api_routes = [Route("v1/maintenance", MaintenanceViewSet, "maintenance")]
