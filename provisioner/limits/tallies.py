"""Counts of workspaces, read once for all totals of a page.

The summed columns have no index, as each measurement would have to update it, so all
rows are read, once for templates and teams together. The migration of workspaces puts
these columns first, as PostgreSQL reads a row from its beginning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import NamedTuple

from django.db import connection
from django.db.models import BooleanField, Count, ExpressionWrapper, Q, Sum
from django.db.models.functions import Coalesce

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template, snapshot_is_there
from provisioner.copies.models import WorkspaceCopy
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.workspace_snapshots.queries import HeldSpace, near_their_bound
from provisioner.workspaces.models import PUT_AWAY, Workspace


class Tally(NamedTuple):
    """The totals of some workspaces, without purged ones.

    `independent` are those of `clones` whose volume was split from its snapshot.
    `held` and `held_bytes` are what quotas count; pool members do not count.
    """

    clones: int = 0
    independent: int = 0
    ready: int = 0
    failed: int = 0
    taken_bytes: int = 0
    held: int = 0
    held_bytes: int = 0


Totals = dict[int | None, Tally]

_COUNTED = Workspace.objects.there().order_by()
_HELD = {
    "held": Count("pk", filter=Q(is_pooled=False) & ~Q(state__in=PUT_AWAY)),
    "held_bytes": Coalesce(Sum("unique_bytes", filter=Q(is_pooled=False)), 0),
}
_FIGURES = {
    "clones": Count("pk"),
    "independent": Count("split_at"),
    "ready": Count("pk", filter=Q(state=Workspace.State.READY)),
    "failed": Count("pk", filter=Q(state=Workspace.State.FAILED)),
    "taken_bytes": Coalesce(Sum("unique_bytes"), 0),
    **_HELD,
}
_PLACES_AND_TEAMS = _COUNTED.values_list("template", "site", "owner__team").annotate(
    **_FIGURES
)


def held_by(person: User) -> Tally:
    """Return what quotas count of a person's workspaces, and only that."""
    return Tally(**_COUNTED.filter(owner=person).aggregate(**_HELD))


def held_in_team(person: User) -> tuple[Tally, Tally]:
    """Return what quotas count of a person's workspaces and of their whole team's.

    One query. The person has a team.
    """
    is_own = ExpressionWrapper(Q(owner=person.pk), output_field=BooleanField())
    rows = _COUNTED.filter(owner__team=person.team_id).annotate(is_own=is_own)
    held = {
        is_theirs: (number, size)
        for is_theirs, number, size in rows.values_list("is_own").annotate(**_HELD)
    }
    own, others = held.get(True, (0, 0)), held.get(False, (0, 0))
    return (
        Tally(held=own[0], held_bytes=own[1]),
        Tally(held=own[0] + others[0], held_bytes=own[1] + others[1]),
    )


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


class CountedMirror(NamedTuple):
    """A mirror's volume, with the number of snapshots that have arrived in it."""

    template_id: int
    template: str
    snapshots: int


class CountedTeam(NamedTuple):
    """A team with its quotas."""

    pk: int
    name: str
    max_workspaces: int | None
    max_unique_bytes: int | None


class Tallies:
    """Totals of all workspaces, read when first needed.

    Templates, mirrors and teams likewise.
    """

    @cached_property
    def by_template(self) -> Totals:
        """Totals by template id, for templates with workspaces."""
        totals = Totals()
        for (pk, _), there in self.by_place.items():
            so_far = totals.get(pk, Tally())
            totals[pk] = Tally(*map(sum, zip(so_far, there, strict=True)))
        return totals

    @property
    def by_place(self) -> dict[tuple[int, int], Tally]:
        """Totals by the ids of template and site: a mirror's clones are at its site."""
        return self._by_place_and_team[0]

    @cached_property
    def mirrors(self) -> dict[int, list[CountedMirror]]:
        """All mirrors by the id of their site, each site's by template."""
        there = Q(snapshots__state=MirroredSnapshot.State.AVAILABLE)
        rows = (
            Mirror.objects.order_by("template__name", "pk")
            .values_list("site", "template", "template__name")
            .annotate(arrived=Count("snapshots", filter=there))
        )
        mirrors = defaultdict[int, list[CountedMirror]](list)
        for site_id, template_id, template, snapshots in rows:
            mirrors[site_id].append(CountedMirror(template_id, template, snapshots))
        return mirrors

    @cached_property
    def copies(self) -> Counter[tuple[int, int]]:
        """How many copies of workspaces there are, by the ids of template and site."""
        there = WorkspaceCopy.objects.with_volume().order_by()
        places = there.values_list("workspace__template", "site")
        return Counter(
            {
                (template, site): number
                for template, site, number in places.annotate(Count("pk"))
            }
        )

    @cached_property
    def near_their_bound(self) -> dict[int, list[tuple[Workspace, HeldSpace]]]:
        """Workspaces whose snapshots hold nearly what they may, by their site's id."""
        near = defaultdict[int, list[tuple[Workspace, HeldSpace]]](list)
        for workspace, held in near_their_bound(None):
            near[workspace.site_id].append((workspace, held))
        return near

    @property
    def by_team(self) -> Totals:
        """Totals by team; None stands for people without a team."""
        return self._by_place_and_team[1]

    @cached_property
    def by_owner(self) -> Totals:
        """What quotas count by person's id, without people who have none: many rows."""
        rows = _COUNTED.values_list("owner").annotate(**_HELD)
        return {owner: Tally(held=held, held_bytes=size) for owner, held, size in rows}

    @cached_property
    def _by_place_and_team(self) -> tuple[dict[tuple[int, int], Tally], Totals]:
        """Both in one scan: PostgreSQL can group by either, the ORM only by all.

        Source: https://www.postgresql.org/docs/15/queries-table-expressions.html
        """
        sql, params = _PLACES_AND_TEAMS.query.sql_with_params()
        select, _, columns = sql.rpartition(" GROUP BY ")
        template, site, team = columns.split(", ")
        sets = f"(({template}, {site}), ({team}))"
        by_place, by_team = dict[tuple[int, int], Tally](), Totals()
        with connection.cursor() as cursor:
            cursor.execute(f"{select} GROUP BY GROUPING SETS {sets}", params)
            for template_id, site_id, team_id, *figures in cursor.fetchall():
                tally = Tally(*map(int, figures))
                if template_id is not None:  # every workspace has a template
                    by_place[template_id, site_id] = tally
                else:
                    by_team[team_id] = tally
        return by_place, by_team

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
