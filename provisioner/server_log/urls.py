"""URLs of the logs of Perforce servers."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.server_log import views
from provisioner.server_log.api.views import (
    LogCommandViewSet,
    ServerLoadViewSet,
    ServerLogViewSet,
)
from provisioner.web.navigation import Place, Section, administrators, register

register(
    Place(
        title="Server load",
        section=Section.PERFORCE,
        url_name="server-load",
        rank=65,
        is_for=administrators,
    ),
    Place(
        title="Server commands",
        section=Section.PERFORCE,
        url_name="server-command-list",
        rank=66,
        is_for=administrators,
    ),
    Place(
        title="Server logs",
        section=Section.PERFORCE,
        url_name="server-log-list",
        covers=("server-log-",),
        rank=67,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/load/", views.server_load, name="server-load"),
    path("perforce/commands/", views.command_list, name="server-command-list"),
    path("perforce/logs/", views.server_log_list, name="server-log-list"),
    path("perforce/logs/<int:pk>/", views.server_log_edit, name="server-log-edit"),
]

api_routes = [
    Route("v1/server-logs", ServerLogViewSet, "server-log"),
    Route("v1/server-load", ServerLoadViewSet, "server-load"),
    Route("v1/server-commands", LogCommandViewSet, "server-command"),
]
