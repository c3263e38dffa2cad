"""Signs of life of workspaces: the activity in them, and their space."""

from __future__ import annotations

import datetime as dt
from itertools import count
from typing import Any

from provisioner.demo.company.studio import Studio
from provisioner.leases.abandonment import WORDS, WORK, newest_of
from provisioner.workspaces.models import Workspace

DAY = dt.timedelta(days=1)
GIB = 2**30
ONE_IN_IS_ABANDONED = 4
ABANDONED_AGE = 36 * DAY


class Signs:
    """Adds what sweeps have seen of an existing workspace."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._old = count()

    def show(self, workspace: Workspace) -> None:
        """Add a workspace's measured space, and its activity if it is ready."""
        self._measure(workspace)
        if workspace.state == Workspace.State.READY:
            self._look(workspace)

    def _measure(self, workspace: Workspace) -> None:
        chance, template = self._studio.chance, workspace.template
        age = max((self._studio.now - workspace.created_at) / DAY, 0.02)
        share = min(chance.lognormvariate(-3.9, 0.9) * (0.4 + age / 60), 0.6)
        holds = template.used_bytes or GIB
        workspace.unique_bytes = int(holds * share) + chance.randrange(2**20)
        workspace.actual_size_bytes = template.clone_size_bytes
        workspace.used_bytes = holds + workspace.unique_bytes
        workspace.used_inodes = int((template.used_inodes or 0) * (1 + share / 3))
        workspace.max_inodes = template.max_inodes
        workspace.measured_at = self._studio.calendar.ago(seconds=70)

    def _look(self, workspace: Workspace) -> None:
        assert workspace.ready_at is not None
        calendar, chance = self._studio.calendar, self._studio.chance
        seen_at = calendar.ago(minutes=chance.uniform(20, 55))
        began = workspace.ready_at
        if began > seen_at:
            return
        newest = seen_at
        is_old = calendar.now - began > ABANDONED_AGE
        if (
            workspace.holds_work
            and is_old
            and next(self._old) % ONE_IN_IS_ABANDONED == 0
        ):
            newest = min(began + chance.uniform(0, 9) * DAY, calendar.ago(days=30))
        worked = calendar.moment(after=max(began, newest - 4 * DAY), before=newest)
        signs: dict[str, Any] = {
            "accessed": _sign(worked),
            "files": _sign(worked - dt.timedelta(minutes=7)),
            "submitted": self._sometimes(0.5, after=began, before=worked),
            "shelved": self._sometimes(0.3, after=began, before=worked),
            "pending": self._sometimes(0.4, after=began, before=worked),
            "touched": _sign(workspace.created_at),
        }
        if self._studio.happens(0.45):
            signs["opened"] = {"count": chance.randrange(1, 30)}
        if not workspace.holds_work:
            signs = {kind: signs[kind] for kind in ("accessed", "files", "touched")}
        workspace.activity, workspace.activity_seen_at = signs, seen_at
        if workspace.holds_work:
            workspace.client_checked_at = seen_at
        workspace.worked_at = newest_of(signs, WORK)
        workspace.used_at = newest_of(signs, WORDS)

    def _sometimes(
        self, share: float, *, after: dt.datetime, before: dt.datetime
    ) -> dict[str, Any]:
        if not self._studio.happens(share):
            return _sign(None)
        return _sign(self._studio.calendar.moment(after=after, before=before))


def _sign(at: dt.datetime | None) -> dict[str, Any]:
    return {"at": at.isoformat() if at else None, "detail": ""}
