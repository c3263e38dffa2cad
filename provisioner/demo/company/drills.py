"""Disaster drills of the studio's server, month by month, and their plan."""

from __future__ import annotations

import datetime as dt

from provisioner.demo import spare
from provisioner.demo.company.sandboxes import PURPOSE, Copies
from provisioner.drills.models import Drill, DrillPlan, DrillVolume
from provisioner.lib.times import rough_text

MONTHLY = dt.time(4)
NO_COMMON = (
    "The volumes have no snapshot of one name at montreal. Replicate a consistency "
    "group, or one snapshot policy."
)
OLD_COPY = (
    "The copy was 2 days old, and may be 24 hours. Check whether SnapMirror still "
    "transfers."
)
# How many months ago what was wrong.
TROUBLES, FINDINGS = {4: NO_COMMON}, {3: OLD_COPY}


class Drills:
    """Makes drills at the other site."""

    def __init__(self, copies: Copies) -> None:
        self._copies, self._studio = copies, copies.studio

    def follow(self) -> None:
        """Add one a month, oldest first, and what the plan says of it now."""
        copies, rows = self._copies, self._studio.rows
        firsts = [at for at in copies.due(MONTHLY) if at.day == 1]
        said = ""
        for month, at in enumerate(firsts):
            said = self._drill(at, months_ago=len(firsts) - month)
        plan = copies.plan(DrillPlan, host=copies.abroad, last=(firsts[-1], said))
        for source, replica in spare.REPLICAS.items():
            rows.add(DrillVolume(plan=plan, source=source, replica=replica))

    def _drill(self, at: dt.datetime, *, months_ago: int) -> str:
        """Add a drill; return what it came to."""
        trouble = TROUBLES.get(months_ago, "")
        finding = FINDINGS.get(months_ago, "")
        took = self._studio.chance.uniform(34, 58)
        sandbox = self._copies.planned(
            PURPOSE.DRILL,
            at=at,
            seconds=12 * 3600 if trouble else took + 6,
            host=self._copies.abroad,
            is_ready=not trouble,
        )
        lost = dt.timedelta(hours=47) if finding else dt.timedelta(minutes=55)
        drill = self._studio.rows.add(
            Drill(
                sandbox=sandbox,
                oldest_hours=24,
                requested_at=at,
                ended_at=at + dt.timedelta(seconds=9 if trouble else took + 1),
                trouble=trouble,
                finding=finding,
            )
        )
        where = sandbox.site.name
        if trouble:
            kind = "drill_failed"
            message = f"It could not be brought up at {where}. {trouble}"
        else:
            drill.copy_of = at - lost
            drill.answered_at = at + dt.timedelta(seconds=took)
            drill.change = self._copies.change_at(drill.copy_of)
            kind = "drill_found_old_copy" if finding else "drill_passed"
            message = (
                f"It answered at {where} after {took:.0f} s, "
                f"{rough_text(lost.total_seconds())} behind at change {drill.change}. "
                f"{finding}"
            ).strip()
        assert drill.ended_at is not None  # it is over
        self._copies.log.tell(self._copies.server, kind, message, at=drill.ended_at)
        return message
