"""The command palette: to a page, a workspace, a template or an operation."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.accounts.models import User
from provisioner.dashboard import palette
from provisioner.web.http import WebRequest

LONGEST_TEXT = 100

PAGES = {
    "My workspaces": "workspace-list",
    "Trash": "workspace-trash",
    "History": "workspace-retired-list",
    "Templates": "template-list",
    "Operations": "operation-list",
    "Bisections": "bisection-list",
    "My account and time zone": "my-account",
    "Change my password": "my-password",
    "API tokens": "token-list",
    "Webhooks": "webhook-list",
    "API for scripts": "api:docs",
}
TEAM_PAGES = {"Workspaces of my team": "workspace-team-list"}
ADMINISTRATORS_PAGES = {
    "Overview": "overview",
    "All workspaces": "admin-workspace-list",
    "People": "person-list",
    "Teams": "team-list",
    "Limits": "limit-list",
    "Abandoned workspaces": "abandoned-list",
    "Lease policies": "lease-policy-list",
    "Define a template": "template-create",
    "Warm pools": "pool-list",
    "Sites": "site-list",
    "Connect a site": "site-create",
    "Perforce servers": "perforce-server-list",
    "Connect a Perforce server": "perforce-server-create",
    "Refreshes of templates": "refresh-list",
    "API tokens of everybody": "token-everybody-list",
    "Drift": "drift",
    "Audit log": "audit-log",
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Somewhere to go; `kind` is said beside its name."""

    title: str
    kind: str
    url: str


@require_safe
@vary_on_headers("HX-Request")
def command_palette(request: WebRequest) -> HttpResponse:
    """Show where the letters that were typed may lead; to htmx the list alone."""
    text = request.GET.get("q", "")[:LONGEST_TEXT]
    page = "dashboard/_places.html" if request.htmx else "dashboard/palette.html"
    places = places_for(request.user, text=text)
    return render(request, page, {"text": text, "places": places})


def places_for(user: User, *, text: str) -> list[Place]:
    """Return what matches, workspaces first."""
    found = palette.found(user, text)
    return [
        *(
            Place(
                title=workspace.name,
                kind=f"workspace of {workspace.owner.username}, "
                f"{workspace.get_state_display().lower()}",
                url=reverse("workspace-detail", args=[workspace.pk]),
            )
            for workspace in found.workspaces
        ),
        *(
            Place(
                title=template.heading,
                kind="archived template" if template.is_archived else "template",
                url=reverse("template-detail", args=[template.pk]),
            )
            for template in found.templates
        ),
        *(
            Place(
                title=f"{operation} ({operation.pk})",
                kind="operation",
                url=reverse("operation-detail", args=[operation.pk]),
            )
            for operation in found.operations
        ),
        *_pages(user, words=text.casefold().split()),
    ]


def _pages(user: User, *, words: list[str]) -> list[Place]:
    pages = {
        **PAGES,
        **(TEAM_PAGES if user.team_id else {}),
        **(ADMINISTRATORS_PAGES if user.is_administrator else {}),
    }
    return [
        Place(title=title, kind="page", url=reverse(name))
        for title, name in pages.items()
        if all(word in title.casefold() for word in words)
    ]
