"""URLs of what runs at Perforce servers, and of how they are set up."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.insight import views
from provisioner.insight.api.views import (
    AdviceRuleViewSet,
    ClientAdviceViewSet,
    ConfigurationViewSet,
    OrphanRuleViewSet,
    ProcessViewSet,
    ProgramReleaseViewSet,
    ProgramUseViewSet,
)
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Processes",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="process-list",
        covers=("process-",),
        rank=60,
        is_for=administrators,
    ),
    Place(
        title="Orphans",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="orphan-list",
        covers=("orphan-",),
        rank=61,
        is_for=administrators,
    ),
    Place(
        title="Programs",
        section=Section.PERFORCE,
        group=Group.PROGRAMS,
        url_name="program-list",
        covers=("program-",),
        rank=57,
        is_for=administrators,
    ),
    Place(
        title="Clients",
        section=Section.PERFORCE,
        group=Group.PROGRAMS,
        url_name="advice-list",
        covers=("advice-",),
        rank=58,
        is_for=administrators,
    ),
    Place(
        title="Configuration",
        section=Section.PERFORCE,
        url_name="configuration-list",
        covers=("configuration-",),
        rank=54,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/processes/", views.process_list, name="process-list"),
    path("perforce/processes/<int:pk>/end/", views.process_end, name="process-end"),
    path("perforce/programs/", views.program_list, name="program-list"),
    path(
        "perforce/programs/releases/", views.program_releases, name="program-releases"
    ),
    path(
        "perforce/programs/releases/<int:pk>/",
        views.program_release,
        name="program-release",
    ),
    path(
        "perforce/programs/releases/<int:pk>/ask/",
        views.program_ask,
        name="program-ask",
    ),
    path("perforce/clients/", views.advice_list, name="advice-list"),
    path("perforce/clients/<int:pk>/", views.advice_rule, name="advice-rule"),
    path("perforce/orphans/", views.orphan_list, name="orphan-list"),
    path("perforce/orphans/<int:pk>/", views.orphan_rule, name="orphan-rule"),
    path("perforce/orphans/<int:pk>/end/", views.orphan_end, name="orphan-end"),
    path(
        "perforce/configuration/", views.configuration_list, name="configuration-list"
    ),
    path(
        "perforce/configuration/read/",
        views.configuration_read,
        name="configuration-read",
    ),
]

api_routes = [
    Route("v1/processes", ProcessViewSet, "process"),
    Route("v1/perforce-programs", ProgramUseViewSet, "program"),
    Route("v1/program-releases", ProgramReleaseViewSet, "program-release"),
    Route("v1/orphan-rules", OrphanRuleViewSet, "orphan-rule"),
    Route("v1/perforce-clients", ClientAdviceViewSet, "perforce-client"),
    Route("v1/advice-rules", AdviceRuleViewSet, "advice-rule"),
    Route("v1/perforce-configurations", ConfigurationViewSet, "configuration"),
]
