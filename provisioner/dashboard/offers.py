"""The templates that somebody is offered, and what stands against each of them.

A person's own are those that they pinned, then those that they or their team use.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import Exists, OuterRef
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.freshness import Freshness, freshness_of_all
from provisioner.catalog.models import Template
from provisioner.catalog.obstacles import Obstacle
from provisioner.catalog.queries import (
    available_snapshots,
    default_snapshots_of,
    is_archived,
    is_pinned_by,
    templates_offered_to,
    templates_to_choose_from,
)
from provisioner.lib.limits import Limit
from provisioner.lib.rows import with_words
from provisioner.workspace_requests.obstacles import obstacles_to
from provisioner.workspaces.queries import Uses, uses_of_templates
from provisioner.workspaces.ready_times import usual_seconds

SHOWN = 8
USED_LATELY = dt.timedelta(days=90)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A template as far as its place among others is concerned."""

    pk: int
    name: str
    is_pinned: bool
    has_snapshots: bool
    uses: Uses

    @property
    def title(self) -> str:
        """The heading that it is shown below."""
        if self.is_pinned:
            return "Pinned"
        return "Used by you and your team" if self.is_used else "More templates"

    @property
    def is_used(self) -> bool:
        return bool(self.uses.own or self.uses.of_team)

    @property
    def place(self) -> tuple[bool | int | str, ...]:
        """What it is ordered by: what can be had now comes first."""
        uses = self.uses
        by_use = (not self.has_snapshots, -uses.own, -uses.of_team, -uses.all)
        return (not self.is_pinned, not self.is_used, *by_use, self.name)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Templates below one heading."""

    title: str
    templates: list[Template]


@dataclass(frozen=True, kw_only=True)
class Offers:
    """`matching` of `count` templates have the words of `text`; the first are shown.

    `can_have_one` says whether any of all can be cloned.
    """

    text: str
    groups: list[Group]
    obstacles: dict[int, Obstacle]
    freshness_by_id: dict[int, Freshness]
    usual_seconds: dict[int, float]
    matching: int
    count: int
    can_have_one: bool

    @property
    def templates(self) -> list[Template]:
        return [template for group in self.groups for template in group.templates]

    @property
    def has_search(self) -> bool:
        return self.count > SHOWN

    @property
    def more(self) -> int:
        """How many more match than are shown."""
        return self.matching - len(self.templates)


def offers_to(user: User, *, text: str, quotas: Sequence[Limit]) -> Offers:
    """Return the templates that somebody is offered, those with all words of a text."""
    choices = _choices(user)
    matching = choices
    if text:
        named = with_words(templates_to_choose_from(user), text, "name", "title")
        found = set(named.values_list("pk", flat=True))
        matching = [choice for choice in choices if choice.pk in found]
    pinned = [choice for choice in matching if choice.is_pinned]
    shown = matching[: max(SHOWN, len(pinned))]
    offered = templates_offered_to(user).annotate(is_pinned=is_pinned_by(user))
    templates = offered.in_bulk([choice.pk for choice in shown])
    return Offers(
        text=text,
        groups=list(_groups(shown, templates)),
        obstacles=obstacles_to(
            user, default_snapshots_of(templates.values()), quotas=quotas
        ),
        freshness_by_id=freshness_of_all(list(templates.values())),
        usual_seconds=usual_seconds(list(templates.values())),
        matching=len(matching),
        count=len(choices),
        can_have_one=any(choice.has_snapshots for choice in choices),
    )


def _choices(user: User) -> list[Choice]:
    """Return all templates on offer in their order. Two queries."""
    uses = uses_of_templates(user, since=timezone.now() - USED_LATELY)
    snapshots = available_snapshots().filter(template=OuterRef("pk"))
    rows = is_archived(templates_to_choose_from(user), "").values_list(
        "pk", "name", is_pinned_by(user), Exists(snapshots)
    )
    choices = [
        Choice(
            pk=pk,
            name=name,
            is_pinned=is_pinned,
            has_snapshots=has_snapshots,
            uses=uses.get(pk, Uses()),
        )
        for pk, name, is_pinned, has_snapshots in rows
    ]
    return sorted(choices, key=lambda choice: choice.place)


def _groups(
    shown: Iterable[Choice], templates: Mapping[int, Template]
) -> Iterator[Group]:
    """Yield the templates below their headings; one that has just gone is left out."""
    for title, choices in groupby(shown, key=lambda choice: choice.title):
        found = [templates[each.pk] for each in choices if each.pk in templates]
        yield Group(title=title, templates=found)
