"""Counts of workspaces, read once for all totals of a page.

The summed columns have no index, as each measurement would have to update it, so all
rows are read, once for each total.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template, snapshot_is_there
from provisioner.workspaces.models import PUT_AWAY, Workspace


class Tally(NamedTuple):
    """The totals of some workspaces, without purged ones.

    `held` and `held_bytes` are what quotas count; pool members do not count.
    """

    clones: int = 0
    ready: int = 0
    failed: int = 0
    taken_bytes: int = 0
    held: int = 0
    held_bytes: int = 0


_COUNTED = Workspace.objects.there().order_by()
_FIGURES = {
    "clones": Count("pk"),
    "ready": Count("pk", filter=Q(state=Workspace.State.READY)),
    "failed": Count("pk", filter=Q(state=Workspace.State.FAILED)),
    "taken_bytes": Coalesce(Sum("unique_bytes"), 0),
    "held": Count("pk", filter=Q(is_pooled=False) & ~Q(state__in=PUT_AWAY)),
    "held_bytes": Coalesce(Sum("unique_bytes", filter=Q(is_pooled=False)), 0),
}


def tally_of(**whose: User | Team) -> Tally:
    """Return the totals of a person's or a team's workspaces."""
    return Tally(**_COUNTED.filter(**whose).aggregate(**_FIGURES))


class CountedTemplate(NamedTuple):
    """A template, and how many of its snapshots are published."""

    pk: int
    name: str
    site_id: int
    state: str
    used_inodes: int | None
    actual_size_bytes: int | None
    used_bytes: int | None
    snapshots_in_volume: int
    clones_of_others: int
    snapshots: int

    @property
    def has_volume(self) -> bool:
        return self.state != Template.State.NEW


class CountedTeam(NamedTuple):
    """A team with its quotas."""

    pk: int
    name: str
    max_workspaces: int | None
    max_unique_bytes: int | None


class Tallies:
    """Totals of all workspaces, each in one query, read when first needed.

    Templates and teams likewise.
    """

    @cached_property
    def by_template(self) -> dict[int | None, Tally]:
        """Totals by template id, for templates with workspaces."""
        return _tallies_by("template")

    @cached_property
    def by_owner(self) -> dict[int | None, Tally]:
        """Totals by person's id, without people who have none: many rows."""
        return _tallies_by("owner")

    @cached_property
    def by_team(self) -> dict[int | None, Tally]:
        """Totals by team; None stands for people without a team."""
        return _tallies_by("owner__team")

    @cached_property
    def templates(self) -> list[CountedTemplate]:
        """All templates by name, including those without workspaces."""
        published = Count("snapshots", filter=snapshot_is_there(by="snapshots__"))
        rows = (
            Template.objects.order_by("name", "pk")
            .values_list(*CountedTemplate._fields[:-1])
            .annotate(published=published)
        )
        return [CountedTemplate(*row) for row in rows]

    @cached_property
    def teams(self) -> list[CountedTeam]:
        """All teams by name, including those without workspaces or a quota."""
        rows = Team.objects.order_by("name").values_list(*CountedTeam._fields)
        return [CountedTeam(*row) for row in rows]


def _tallies_by(column: str) -> dict[int | None, Tally]:
    """Return the totals by a column of workspaces.

    The groups of two columns at once are so many that to read and add them takes
    longer than to count twice.
    """
    rows = _COUNTED.values_list(column).annotate(**_FIGURES)
    return {pk: Tally(*figures) for pk, *figures in rows}
