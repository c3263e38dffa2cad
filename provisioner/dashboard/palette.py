"""Search for pages, rows and actions by a few letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Value, When

from provisioner.accounts.models import User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_to_choose_from
from provisioner.engine.models import Operation
from provisioner.engine.queries import find_visible_operation
from provisioner.lib.rows import with_words, words_of
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import sandboxes_visible_to
from provisioner.sites.models import Site
from provisioner.sites.queries import sites_matching
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to

SHOWN = 8
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Found:
    """Rows with a matching name that a person may see."""

    templates: list[Template]
    mirrors: list[Mirror]
    workspaces: list[Workspace]
    operations: list[Operation]
    sandboxes: list[Sandbox]
    people: list[User]
    sites: list[Site]


def found(user: User, text: str) -> Found:
    """Return the rows that match all words of a text, a person's own first.

    A number also finds an operation. Without a text only own workspaces are found.
    Administrators also find people and sites.
    """
    visible = workspaces_visible_to(user).there()
    if not words_of(text):
        visible = visible.filter(owner=user)
    workspaces = with_words(visible, text, "name", "owner__username")
    templates = with_words(templates_to_choose_from(user), text, "name", "title")
    own_first = Case(When(owner=user, then=Value(0)), default=Value(1))
    # Which they are is found without their rows: a search looks at every one.
    keys = list(workspaces.order_by(own_first, "name").values_list("pk")[:SHOWN])
    shown = workspaces_visible_to(user).in_bulk([pk for (pk,) in keys])
    return Found(
        workspaces=[shown[pk] for (pk,) in keys if pk in shown],
        templates=list(templates.order_by("name")[:SHOWN]),
        mirrors=_mirrors(user, text),
        operations=_operations(user, text.strip()),
        sandboxes=_sandboxes(user, text),
        **_of_administrators(user, text),
    )


def _mirrors(user: User, text: str) -> list[Mirror]:
    if not words_of(text):
        return []
    mirrors = mirrors_visible_to(user).select_related(None)
    return list(with_words(mirrors, text, "name").order_by("name")[:SHOWN])


def _sandboxes(user: User, text: str) -> list[Sandbox]:
    if not words_of(text):
        return []
    named = with_words(sandboxes_visible_to(user), text, "name")
    return list(named.order_by("name")[:SHOWN])


def _of_administrators(user: User, text: str) -> dict[str, Any]:
    if not (user.is_administrator and words_of(text)):
        return {"people": [], "sites": []}
    active = User.objects.filter(is_active=True).exclude(username=SYSTEM_USERNAME)
    people = with_words(active, text, "username", "email").select_related("team")
    return {
        "people": list(people.order_by("username")[:SHOWN]),
        "sites": list(sites_matching(user, text=text).order_by("name")[:SHOWN]),
    }


def _operations(user: User, text: str) -> list[Operation]:
    if not text.isdecimal() or int(text) > LARGEST_ID:
        return []
    operation = find_visible_operation(user, pk=int(text))
    return [] if operation is None else [operation]
