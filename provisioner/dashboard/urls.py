"""Addresses of dashboard."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.accounts.models import User
from provisioner.api.routes import Route
from provisioner.dashboard.api.perforce_servers import PerforceServerViewSet
from provisioner.dashboard.views import (
    administration,
    command_line,
    health,
    palette,
    perforce_servers,
    setup,
    slots,
    templates,
    workspaces,
)
from provisioner.web.navigation import Place, Section, administrators, register


def in_a_team(user: User) -> bool:
    return user.team_id is not None


register(
    Place(
        title="Overview",
        section=Section.OVERVIEW,
        url_name="overview",
        covers=("setup", "savings"),
        is_for=administrators,
    ),
    Place(
        title="All workspaces",
        section=Section.WORKSPACES,
        url_name="admin-workspace-list",
        covers=("workspace-",),
        rank=10,
        is_for=administrators,
    ),
    Place(
        title="My workspaces",
        section=Section.WORKSPACES,
        url_name="workspace-list",
        covers=("workspace-", "setup"),
        rank=20,
    ),
    Place(
        title="Team workspaces",
        section=Section.WORKSPACES,
        url_name="workspace-team-list",
        rank=30,
        is_for=in_a_team,
    ),
    Place(
        title="Templates",
        section=Section.TEMPLATES,
        url_name="template-list",
        covers=("template-", "snapshot-"),
        rank=10,
    ),
    Place(
        title="Refreshes",
        section=Section.TEMPLATES,
        url_name="refresh-list",
        covers=("refresh-",),
        rank=20,
        is_for=administrators,
    ),
    Place(
        title="Servers",
        section=Section.PERFORCE,
        url_name="perforce-server-list",
        covers=("perforce-server-",),
        is_for=administrators,
    ),
    Place(title="Search", section=Section.SEARCH, url_name="palette"),
)

urlpatterns: list[URLPattern] = [
    path("templates/", templates.template_list, name="template-list"),
    path("refreshes/", templates.refresh_list, name="refresh-list"),
    path("", workspaces.workspace_list, name="workspace-list"),
    path("team/", workspaces.workspace_team_list, name="workspace-team-list"),
    path("workspaces/<int:pk>/", workspaces.workspace_detail, name="workspace-detail"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("cli", command_line.command_line, name="command-line"),
    path("setup/", setup.setup_page, name="setup"),
    path("perforce/", slots.perforce_server_list, name="perforce-server-list"),
    path(
        "perforce/new/",
        perforce_servers.perforce_server_create,
        name="perforce-server-create",
    ),
    path(
        "perforce/<int:pk>/",
        perforce_servers.perforce_server_detail,
        name="perforce-server-detail",
    ),
    path(
        "perforce/<int:pk>/edit/",
        perforce_servers.perforce_server_edit,
        name="perforce-server-edit",
    ),
    path(
        "perforce/<int:pk>/test/",
        perforce_servers.perforce_server_test,
        name="perforce-server-test",
    ),
    path(
        "perforce/<int:pk>/pause/",
        slots.perforce_server_pause,
        name="perforce-server-pause",
    ),
    path(
        "perforce/<int:pk>/resume/",
        slots.perforce_server_resume,
        name="perforce-server-resume",
    ),
    path("palette/", palette.command_palette, name="palette"),
    path("overview/", administration.overview, name="overview"),
    path("savings/", administration.savings_list, name="savings-list"),
    path(
        "workspaces/",
        administration.admin_workspace_list,
        name="admin-workspace-list",
    ),
]

api_routes = [
    Route("v1/perforce-servers", PerforceServerViewSet, "perforce-server"),
]
