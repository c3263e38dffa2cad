"""What workspaces there are, counted once for everything that a page adds up.

No index has what is summed: what a workspace takes is measured every two minutes, and
while no index has it that costs none of them anything. So all of them are read, once.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from django.db import connection

from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import GONE

# The ORM knows no grouping sets, and would read everything for each of the three.
_COUNTED = """
    SELECT
        GROUPING(w.template_id, w.owner_id, u.team_id),
        COALESCE(w.template_id, w.owner_id, u.team_id),
        COUNT(*),
        COUNT(*) FILTER (WHERE w.state = %(ready)s),
        COUNT(*) FILTER (WHERE w.state = %(failed)s),
        COALESCE(SUM(w.unique_bytes), 0)::bigint,
        COUNT(*) FILTER (WHERE NOT w.is_pooled AND w.state <> ALL(%(gone)s)),
        COALESCE(SUM(w.unique_bytes) FILTER (WHERE NOT w.is_pooled), 0)::bigint
    FROM workspaces_workspace w JOIN accounts_user u ON u.id = w.owner_id
    WHERE w.state <> %(retired)s
    GROUP BY GROUPING SETS ((w.template_id), (w.owner_id), (u.team_id))
"""
_BY_TEMPLATE, _BY_OWNER, _BY_TEAM = 0b011, 0b101, 0b110


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
    """All workspaces, in one query, read when a figure is first asked for."""

    @property
    def by_template(self) -> dict[int | None, Tally]:
        """What there is of each template that has a workspace, by its id."""
        return self._found[_BY_TEMPLATE]

    @property
    def by_owner(self) -> dict[int | None, Tally]:
        """What each person has who has something, by their id."""
        return self._found[_BY_OWNER]

    @property
    def by_team(self) -> dict[int | None, Tally]:
        """What the members of each team have together; None: who is in no team."""
        return self._found[_BY_TEAM]

    @cached_property
    def _found(self) -> dict[int, dict[int | None, Tally]]:
        found: dict[int, dict[int | None, Tally]] = {
            _BY_TEMPLATE: {},
            _BY_OWNER: {},
            _BY_TEAM: {},
        }
        with connection.cursor() as cursor:
            cursor.execute(
                _COUNTED,
                {
                    "ready": Workspace.State.READY,
                    "failed": Workspace.State.FAILED,
                    "retired": Workspace.State.RETIRED,
                    "gone": list(GONE),
                },
            )
            for grouped_by, pk, *figures in cursor.fetchall():
                found[grouped_by][pk] = Tally(*figures)
        return found
