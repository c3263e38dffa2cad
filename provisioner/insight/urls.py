"""URLs of what runs at Perforce servers, and of how they are set up."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.insight import views
from provisioner.insight.api.views import (
    ConfigurationViewSet,
    OrphanRuleViewSet,
    ProcessViewSet,
    ProgramUseViewSet,
)
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Processes",
        section=Section.PERFORCE,
        url_name="process-list",
        covers=("process-",),
        rank=60,
        is_for=administrators,
    ),
    Place(
        title="Orphans",
        section=Section.PERFORCE,
        url_name="orphan-list",
        covers=("orphan-",),
        rank=61,
        is_for=administrators,
    ),
    Place(
        title="Programs",
        section=Section.PERFORCE,
        url_name="program-list",
        rank=62,
        is_for=administrators,
    ),
    Place(
        title="Configuration",
        section=Section.PERFORCE,
        url_name="configuration-list",
        rank=70,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/processes/", views.process_list, name="process-list"),
    path("perforce/processes/<int:pk>/end/", views.process_end, name="process-end"),
    path("perforce/programs/", views.program_list, name="program-list"),
    path("perforce/orphans/", views.orphan_list, name="orphan-list"),
    path("perforce/orphans/<int:pk>/", views.orphan_rule, name="orphan-rule"),
    path("perforce/orphans/<int:pk>/end/", views.orphan_end, name="orphan-end"),
    path(
        "perforce/configuration/", views.configuration_list, name="configuration-list"
    ),
]

api_routes = [
    Route("v1/processes", ProcessViewSet, "process"),
    Route("v1/perforce-programs", ProgramUseViewSet, "program"),
    Route("v1/orphan-rules", OrphanRuleViewSet, "orphan-rule"),
    Route("v1/perforce-configurations", ConfigurationViewSet, "configuration"),
]
