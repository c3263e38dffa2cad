"""Where a person may want to go, by a few letters of its name."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Case, Q, Value, When

from provisioner.accounts.models import User
from provisioner.workspaces.models import Operation, Template, Workspace
from provisioner.workspaces.queries import (
    operations_visible_to,
    templates_visible_to,
    workspaces_visible_to,
)

SHOWN = 8
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a person may see that has the letters in its name."""

    workspaces: list[Workspace]
    templates: list[Template]
    operations: list[Operation]


def found(user: User, text: str) -> Found:
    """Return what matches all words of a text, a person's own before others'.

    A number names an operation, too. Without a text, workspaces are one's own alone.
    """
    words = text.replace("\0", "").split()
    workspaces = workspaces_visible_to(user).exclude(state=Workspace.State.RETIRED)
    templates = templates_visible_to(user)
    if not words:
        workspaces = workspaces.filter(owner=user)
    for word in words:
        workspaces = workspaces.filter(
            Q(name__icontains=word) | Q(owner__username__icontains=word)
        )
        templates = templates.filter(name__icontains=word)
    own_first = Case(When(owner=user, then=Value(0)), default=Value(1))
    return Found(
        workspaces=list(workspaces.order_by(own_first, "name")[:SHOWN]),
        templates=list(templates.order_by("name")[:SHOWN]),
        operations=_operations(user, words),
    )


def _operations(user: User, words: list[str]) -> list[Operation]:
    if len(words) != 1 or not words[0].isdecimal() or int(words[0]) > LARGEST_ID:
        return []
    operations = operations_visible_to(user).prefetch_related(None)
    return list(operations.filter(pk=int(words[0])))
