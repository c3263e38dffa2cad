"""The templates offered to a person, each with its obstacle.

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
from provisioner.catalog.freshness import freshness_since
from provisioner.catalog.models import Snapshot, references_of
from provisioner.catalog.offers import Offer
from provisioner.catalog.queries import (
    defaults_among,
    is_archived,
    is_pinned_by,
    templates_offered_to,
    templates_to_choose_from,
)
from provisioner.lib.limits import Limit
from provisioner.lib.rows import with_words
from provisioner.sites.queries import home_sites_of
from provisioner.workspace_requests.obstacles import obstacles_to
from provisioner.workspace_requests.site_choice import arrivals_of, places_of
from provisioner.workspaces.queries import Uses, uses_of_templates
from provisioner.workspaces.ready_times import usual_seconds

SHOWN = 8
USED_LATELY = dt.timedelta(days=90)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What decides a template's place in the list."""

    pk: int
    name: str
    is_pinned: bool
    has_snapshots: bool
    uses: Uses

    @property
    def title(self) -> str:
        """The heading of its group."""
        if self.is_pinned:
            return "Pinned"
        return "Used by you and your team" if self.is_used else "More templates"

    @property
    def is_used(self) -> bool:
        return bool(self.uses.own or self.uses.of_team)

    @property
    def place(self) -> tuple[bool | int | str, ...]:
        """Its sort key: templates with snapshots come first."""
        uses = self.uses
        by_use = (not self.has_snapshots, -uses.own, -uses.of_team, -uses.all)
        return (not self.is_pinned, not self.is_used, *by_use, self.name)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Offers under one heading."""

    title: str
    offers: list[Offer]


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The first of the `matching` templates that have all words of `text`, grouped.

    `count` is the number of all templates; `can_have_one`: at least one has a snapshot.
    """

    text: str
    groups: list[Group]
    matching: int
    count: int
    can_have_one: bool

    @property
    def has_search(self) -> bool:
        return self.count > SHOWN

    @property
    def more(self) -> int:
        """How many matching templates are not shown."""
        return self.matching - sum(len(group.offers) for group in self.groups)


def offers_to(user: User, *, text: str, quotas: Sequence[Limit]) -> Offers:
    """Return the templates offered to a person that have all words of a text."""
    choices = _choices(user)
    matching = choices
    if text:
        named = with_words(templates_to_choose_from(user), text, "name", "title")
        found = set(named.values_list("pk", flat=True))
        matching = [choice for choice in choices if choice.pk in found]
    pinned = [choice for choice in matching if choice.is_pinned]
    shown = matching[: max(SHOWN, len(pinned))]
    offered = templates_offered_to(user).annotate(is_pinned=is_pinned_by(user))
    templates = list(offered.in_bulk([choice.pk for choice in shown]).values())
    references = references_of(templates)
    homes = home_sites_of(user)
    places = places_of(homes, templates)
    defaults = defaults_among(references) | {
        pk: snapshot for pk, (_, snapshot) in places.items()
    }
    sites = {snapshot.pk: site for site, snapshot in places.values()}
    obstacles = obstacles_to(user, defaults.values(), quotas=quotas, sites=sites)
    coming = arrivals_of(homes, templates)
    freshness, seconds = freshness_since(references), usual_seconds(templates)
    offers = {
        template.pk: Offer(
            template=template,
            user=user,
            default=default,
            site=sites.get(default.pk) if default else None,
            coming=coming.get(template.pk, ""),
            freshness=freshness.get(template.pk),
            usual_seconds=seconds.get(template.pk),
            obstacle=obstacles.get(default.pk) if default else None,
        )
        for template in templates
        for default in [defaults.get(template.pk)]
    }
    return Offers(
        text=text,
        groups=list(_groups(shown, offers)),
        matching=len(matching),
        count=len(choices),
        can_have_one=any(choice.has_snapshots for choice in choices),
    )


def _choices(user: User) -> list[Choice]:
    """Return all templates on offer, in order. Two queries."""
    uses = uses_of_templates(user, since=timezone.now() - USED_LATELY)
    snapshots = Snapshot.objects.available().filter(template=OuterRef("pk"))
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


def _groups(shown: Iterable[Choice], offers: Mapping[int, Offer]) -> Iterator[Group]:
    """Yield the offers by heading, without templates that were just deleted."""
    for title, choices in groupby(shown, key=lambda choice: choice.title):
        found = [offers[each.pk] for each in choices if each.pk in offers]
        yield Group(title=title, offers=found)
