"""What workspaces there are, counted once for everything that a page adds up."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from provisioner.accounts.models import User
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import GONE

_HELD = Q(is_pooled=False)
_FIGURES = {
    "clones": Count("pk"),
    "ready": Count("pk", filter=Q(state=Workspace.State.READY)),
    "failed": Count("pk", filter=Q(state=Workspace.State.FAILED)),
    "taken_bytes": Coalesce(Sum("unique_bytes"), 0),
    "held": Count("pk", filter=_HELD & ~Q(state__in=GONE)),
    "held_bytes": Coalesce(Sum("unique_bytes", filter=_HELD), 0),
}


class Tally(NamedTuple):
    """What some workspaces are, without those that were retired for good.

    `held` and `held_bytes` are what quotas count: nothing of a warm pool.
    """

    clones: int = 0
    ready: int = 0
    failed: int = 0
    taken_bytes: int = 0
    held: int = 0
    held_bytes: int = 0


class Tallies:
    """All workspaces, read when a figure is first asked for: one query for each."""

    @cached_property
    def by_template(self) -> dict[int, Tally]:
        """What there is of each template that has a workspace, by its id."""
        return _counted(by="template")

    @cached_property
    def by_owner(self) -> dict[int, Tally]:
        """What each person has who has something, by their id."""
        return _counted(by="owner")

    @cached_property
    def by_team(self) -> dict[int | None, Tally]:
        """What the members of each team have together; None: who is in no team."""
        in_teams = User.objects.filter(team__isnull=False)
        team_of = dict(in_teams.values_list("pk", "team"))
        members: dict[int | None, list[Tally]] = defaultdict(list)
        for owner, tally in self.by_owner.items():
            members[team_of.get(owner)].append(tally)
        return {
            team: Tally(*map(sum, zip(*tallies, strict=True)))
            for team, tallies in members.items()
        }


def _counted(*, by: str) -> dict[int, Tally]:
    rows = (
        Workspace.objects.exclude(state=Workspace.State.RETIRED)
        .order_by()
        .values_list(by)
        .annotate(**_FIGURES)
    )
    return {pk: Tally(*figures) for pk, *figures in rows}
