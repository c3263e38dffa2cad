"""What workspaces there are, counted once for everything that a page adds up.

No index has what is summed: what a workspace takes is measured every two minutes, and
while no index has it that costs none of them anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from provisioner.accounts.models import User
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import GONE

_HELD = Q(is_pooled=False)
_FIGURES = {
    "clones": Count("*"),
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
        # Few templates have many each: telling states apart is quicker done here.
        rows = _there().values_list("template", "state", "is_pooled")
        found: dict[int, list[Tally]] = defaultdict(list)
        for pk, state, is_pooled, number, taken in rows.annotate(
            number=Count("*"), taken=Coalesce(Sum("unique_bytes"), 0)
        ):
            is_held = not is_pooled and state not in GONE
            tally = Tally(
                clones=number,
                ready=number if state == Workspace.State.READY else 0,
                failed=number if state == Workspace.State.FAILED else 0,
                taken_bytes=taken,
                held=number if is_held else 0,
                held_bytes=0 if is_pooled else taken,
            )
            found[pk].append(tally)
        return {pk: _together(tallies) for pk, tallies in found.items()}

    @cached_property
    def by_owner(self) -> dict[int, Tally]:
        """What each person has who has something, by their id."""
        rows = _there().values_list("owner").annotate(**_FIGURES)
        return {pk: Tally(*figures) for pk, *figures in rows}

    @cached_property
    def by_team(self) -> dict[int | None, Tally]:
        """What the members of each team have together; None: who is in no team."""
        in_teams = User.objects.filter(team__isnull=False)
        team_of = dict(in_teams.values_list("pk", "team"))
        members: dict[int | None, list[Tally]] = defaultdict(list)
        for owner, tally in self.by_owner.items():
            members[team_of.get(owner)].append(tally)
        return {team: _together(tallies) for team, tallies in members.items()}


def _there() -> QuerySet[Workspace]:
    return Workspace.objects.exclude(state=Workspace.State.RETIRED).order_by()


def _together(tallies: Iterable[Tally]) -> Tally:
    return Tally(*map(sum, zip(*tallies, strict=True)))
