"""URLs of dashboard."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.accounts.models import User
from provisioner.dashboard.lists import ALL_WORKSPACES, TEAM_WORKSPACES
from provisioner.dashboard.views import (
    administration,
    command_line,
    health,
    palette,
    setup,
    workspaces,
)
from provisioner.web.http import administrators_only
from provisioner.web.lists.answers import list_page
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
    Place(title="Search", section=Section.SEARCH, url_name="palette"),
)

urlpatterns: list[URLPattern] = [
    path("", workspaces.workspace_list, name="workspace-list"),
    path(
        "team/",
        list_page(TEAM_WORKSPACES, "workspaces/team.html"),
        name="workspace-team-list",
    ),
    path("workspaces/<int:pk>/", workspaces.workspace_detail, name="workspace-detail"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("cli", command_line.command_line, name="command-line"),
    path("setup/", setup.setup_page, name="setup"),
    path("palette/", palette.command_palette, name="palette"),
    path("overview/", administration.overview, name="overview"),
    path("savings/", administration.savings_list, name="savings-list"),
    path(
        "workspaces/",
        administrators_only(list_page(ALL_WORKSPACES, "dashboard/workspaces.html")),
        name="admin-workspace-list",
    ),
]
