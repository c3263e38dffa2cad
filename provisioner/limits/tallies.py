"""Counts of workspaces, read once for all totals of a page.

The summed columns have no index, as each measurement would have to update it, so all
rows are read, once.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from django.db import connection
from django.db.models import Count

from provisioner.accounts.models import Team
from provisioner.catalog.models import Template, snapshot_is_there
from provisioner.workspaces.models import PUT_AWAY, Workspace

# The ORM knows no grouping sets, and would read everything for each of them.
_COUNTED = """
    SELECT
        CASE 0 WHEN GROUPING(w.template_id) THEN 'template'
            WHEN GROUPING(u.team_id) THEN 'team' ELSE 'owner' END,
        COALESCE(w.template_id, u.team_id{or_owner}),
        COUNT(*),
        COUNT(*) FILTER (WHERE w.state = %(ready)s),
        COUNT(*) FILTER (WHERE w.state = %(failed)s),
        COALESCE(SUM(w.unique_bytes), 0)::bigint,
        COUNT(*) FILTER (WHERE NOT w.is_pooled AND w.state <> ALL(%(put_away)s)),
        COALESCE(SUM(w.unique_bytes) FILTER (WHERE NOT w.is_pooled), 0)::bigint
    FROM workspaces_workspace w JOIN accounts_user u ON u.id = w.owner_id
    WHERE w.state <> %(retired)s
    GROUP BY GROUPING SETS (w.template_id, u.team_id{or_owner})
"""
_OR_OWNER = ", w.owner_id"


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
    """All workspaces, in one query, read when a figure is first needed.

    Templates and teams likewise, in one query each. `with_people` also groups them by
    owner: many rows, which few pages need.
    """

    def __init__(self, *, with_people: bool = False) -> None:
        self._with_people = with_people

    @property
    def by_template(self) -> dict[int | None, Tally]:
        """Totals by template id, for templates with workspaces."""
        return self._found["template"]

    @property
    def by_owner(self) -> dict[int | None, Tally]:
        """Totals by person's id, without people who have none."""
        assert self._with_people
        return self._found["owner"]

    @property
    def by_team(self) -> dict[int | None, Tally]:
        """Totals by team; None stands for people without a team."""
        return self._found["team"]

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

    @cached_property
    def _found(self) -> dict[str, dict[int | None, Tally]]:
        found: dict[str, dict[int | None, Tally]]
        found = {"template": {}, "team": {}, "owner": {}}
        with connection.cursor() as cursor:
            cursor.execute(
                _COUNTED.format(or_owner=_OR_OWNER if self._with_people else ""),
                {
                    "ready": Workspace.State.READY,
                    "failed": Workspace.State.FAILED,
                    "retired": Workspace.State.RETIRED,
                    "put_away": list(PUT_AWAY),
                },
            )
            for grouped_by, pk, *figures in cursor.fetchall():
                found[grouped_by][pk] = Tally(*figures)
        return found
