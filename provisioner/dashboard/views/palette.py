"""The command palette: rows by name, what contains a change, and actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.accounts.models import User
from provisioner.dashboard import palette
from provisioner.dashboard.containing import Holding, holding
from provisioner.dashboard.palette import LARGEST_ID
from provisioner.dashboard.palette_actions import deeds, is_verb
from provisioner.lib.rows import words_of
from provisioner.web import navigation
from provisioner.web.http import WebRequest

LONGEST_TEXT = 100

PAGES = {
    "My workspaces": "workspace-list",
    "Trash": "workspace-trash",
    "History": "workspace-retired-list",
    "Templates": "template-list",
    "Operations": "operation-list",
    "Bisections": "bisection-list",
    "Mirrors": "mirror-list",
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
    "Create a mirror": "mirror-create",
    "Warm pools": "pool-list",
    "Sites": "site-list",
    "Connect a site": "site-create",
    "Perforce servers": "perforce-server-list",
    "Connect a Perforce server": "perforce-server-create",
    "Refreshes of templates": "refresh-list",
    "Everybody's API tokens": "token-everybody-list",
    "Drift": "drift",
    "Audit log": "audit-log",
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A link of the command palette; `kind` is shown beside its name."""

    title: str
    kind: str
    url: str


@require_safe
@vary_on_headers("HX-Request")
def command_palette(request: WebRequest) -> HttpResponse:
    """Show the matches of the typed letters; htmx gets only the list."""
    text = request.GET.get("q", "")[:LONGEST_TEXT]
    page = "dashboard/_places.html" if request.htmx else "dashboard/palette.html"
    places = places_for(request.user, text=text)
    change = change_meant(text)
    verb, _, name = text.strip().partition(" ")
    context = {
        "text": text,
        "places": places,
        "change": change,
        "verb": verb.lower() if is_verb(verb) else "",
        "name": name.strip(),
    }
    return render(request, page, context)


def places_for(user: User, *, text: str) -> list[Place]:
    """Return the matches; Enter opens the first one.

    "@" and a number search for what contains a change. A complete verb comes before
    rows with that word in their names; an incomplete one comes last.
    """
    words = words_of(text)
    if (change := change_meant(text)) is not None:
        return list(_containing(user, change))
    verbs = [
        Place(title=deed.title, kind="action", url=deed.verb.url_for(deed.row))
        for deed in deeds(user, words)
    ]
    comes_first = bool(words) and is_verb(words[0])
    found = [*_rows(user, text), *_pages(user, words=text.casefold().split())]
    return [*verbs, *found] if comes_first else [*found, *verbs]


def change_meant(text: str) -> int | None:
    """Return the change in a text such as @1840013, or None."""
    number = text.strip().removeprefix("@")
    is_named = text.strip().startswith("@") and number.isascii() and number.isdecimal()
    return int(number) if is_named and int(number) <= LARGEST_ID else None


def _containing(user: User, change: int) -> Iterator[Place]:
    found = holding(user, change)
    for each in found:
        yield Place(
            title=each.template.heading,
            kind=_kind_of(each, change),
            url=reverse("template-detail", args=[each.template.pk]),
        )
    for each in found:
        word = "contains it" if each.is_certain else "is as new"
        for workspace in each.workspaces:
            yield Place(
                title=workspace.name,
                kind=f"workspace at change {workspace.snapshot.change}, {word}",
                url=reverse("workspace-detail", args=[workspace.pk]),
            )


def _kind_of(each: Holding, change: int) -> str:
    """Return which snapshots of a template contain a change."""
    if not each.snapshots:
        return f"template, no snapshot contains @{change} yet"
    newest, number = each.newest, each.snapshots
    at, contain = f"{number} snapshots up to", "contain"
    if number == 1:
        at, contain = "a snapshot at", "contains"
    if each.is_certain:
        return f"template, {at} change {newest} {contain} @{change}"
    return f"template, {at} change {newest}; whether its view has @{change} is unknown"


def _rows(user: User, text: str) -> Iterator[Place]:
    """Yield rows with the words in their names: templates, workspaces, the others."""
    found = palette.found(user, text)
    for template in found.templates:
        kind = "archived template" if template.is_archived else "template"
        yield Place(
            title=template.heading,
            kind=kind,
            url=reverse("template-detail", args=[template.pk]),
        )
    for workspace in found.workspaces:
        yield Place(
            title=workspace.name,
            kind=f"workspace of {workspace.owner.username}, "
            f"{workspace.get_state_display().lower()}",
            url=reverse("workspace-detail", args=[workspace.pk]),
        )
    for person in found.people:
        yield Place(
            title=person.username,
            kind=f"person, team {person.team}" if person.team else "person",
            url=reverse("person-detail", args=[person.pk]),
        )
    for site in found.sites:
        yield Place(
            title=str(site), kind="site", url=reverse("site-detail", args=[site.pk])
        )
    for mirror in found.mirrors:
        yield Place(
            title=mirror.name,
            kind=f"mirror, {mirror.get_state_display().lower()}",
            url=reverse("mirror-detail", args=[mirror.pk]),
        )
    for sandbox in found.sandboxes:
        yield Place(
            title=sandbox.name,
            kind=f"sandbox of {sandbox.perforce_server.name}, "
            f"{sandbox.get_state_display().lower()}",
            url=reverse("sandbox-detail", args=[sandbox.pk]),
        )
    for operation in found.operations:
        yield Place(
            title=f"{operation} ({operation.pk})",
            kind="operation",
            url=reverse("operation-detail", args=[operation.pk]),
        )


def _pages(user: User, *, words: list[str]) -> list[Place]:
    pages = {
        **PAGES,
        **(TEAM_PAGES if user.team_id else {}),
        **(ADMINISTRATORS_PAGES if user.is_administrator else {}),
    }
    named = [
        (title, name)
        for title, name in pages.items()
        if all(word in title.casefold() for word in words)
    ]
    if words:
        named += _of_sidebar(user, words=words, beside={name for _, name in named})
    return [Place(title=title, kind="page", url=reverse(name)) for title, name in named]


def _of_sidebar(
    user: User, *, words: list[str], beside: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield places of the sidebar by their titles, or by what else they are called."""
    for place in navigation.places_for(user):
        called = " ".join((place.title, *place.also)).casefold()
        if place.url_name not in beside and all(word in called for word in words):
            yield place.title, place.url_name
