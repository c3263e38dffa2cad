"""URLs of what runs at Perforce servers."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.insight import views
from provisioner.insight.api.views import ProcessViewSet
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Processes",
        section=Section.PERFORCE,
        url_name="process-list",
        covers=("process-",),
        rank=60,
        is_for=administrators,
    )
)

urlpatterns: list[URLPattern] = [
    path("perforce/processes/", views.process_list, name="process-list"),
    path("perforce/processes/<int:pk>/end/", views.process_end, name="process-end"),
]

api_routes = [Route("v1/processes", ProcessViewSet, "process")]
