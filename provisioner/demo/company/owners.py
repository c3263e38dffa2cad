"""Decisions of template owners: labels, one held and one withdrawn snapshot."""

from __future__ import annotations

import datetime as dt

from provisioner.catalog.models import Snapshot
from provisioner.demo.company.events import Log
from provisioner.demo.company.leases import Leases
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.notify.models import Notification
from provisioner.workspaces.models import LEASED, Workspace

LABELS = ("Milestone 7", "Certified", "Playtest of Friday", "Trade fair")
WHY_HELD = "Season four is frozen; its fixes are built on this one."
WHY_WITHDRAWN = "Its navigation data is of another branch: levels do not load."
HELD, WITHDRAWN = "driftline-release", "hexforge"


class Owners:
    """Makes these decisions, once workspaces exist."""

    def __init__(self, studio: Studio, *, leases: Leases, log: Log) -> None:
        self._studio, self._leases, self._log = studio, leases, log

    def judge(self, templates: list[Built], there: list[Workspace]) -> None:
        """Label some snapshots, hold one and withdraw one."""
        for label, built in zip(LABELS, templates, strict=False):
            if built.offered:
                self._label(built, built.offered[-1], label)
        for built in templates:
            if built.plan.name == HELD and built.offered:
                self._hold(built, built.offered[-1])
            if built.plan.name == WITHDRAWN:
                self._withdraw(built, there)

    def _label(self, built: Built, snapshot: Snapshot, label: str) -> None:
        snapshot.label = label
        snapshot.notes = "Looked through by the leads before it was handed out."
        self._tell(built, snapshot, "snapshot_described", "Changed label and notes of")

    def _hold(self, built: Built, snapshot: Snapshot) -> None:
        snapshot.held_by, snapshot.hold_reason = built.template.owner, WHY_HELD
        snapshot.held_at = self._tell(
            built,
            snapshot,
            "snapshot_held",
            "New workspaces get",
            ending="until it is released.",
            reason=WHY_HELD,
        )

    def _withdraw(self, built: Built, there: list[Workspace]) -> None:
        """Withdraw a used snapshot that is not among the newest; notify its users."""
        newest = built.snapshots[-built.template.snapshots_to_keep - 1 :]
        used = {each.snapshot.pk for each in there}
        older = [
            each for each in built.offered if each.pk in used and each not in newest
        ]
        if not older:
            return
        snapshot = older[-1]
        at = self._tell(
            built,
            snapshot,
            "snapshot_withdrawn",
            "Withdrew",
            ending="nobody gets it any more.",
            reason=WHY_WITHDRAWN,
        )
        snapshot.withdrawn_at, snapshot.withdrawn_by = at, built.template.owner
        snapshot.withdraw_reason = WHY_WITHDRAWN
        kind = Notification.Kind.SNAPSHOT_WITHDRAWN
        for workspace in there:
            is_of_it = workspace.snapshot == snapshot and workspace.state in LEASED
            if is_of_it and not workspace.owner.is_service:
                self._leases.mail(workspace, kind, due_at=at, deadline_at=None)

    def _tell(
        self,
        built: Built,
        snapshot: Snapshot,
        kind: str,
        verb: str,
        *,
        ending: str = "",
        reason: str = "",
    ) -> dt.datetime:
        """Add the event; return its time."""
        calendar = self._studio.calendar
        at = calendar.moment(
            after=max(snapshot.created_at, calendar.ago(days=3)), before=calendar.now
        )
        named = f"change {snapshot.change} ({snapshot.name})"
        end = f"{'' if kind == 'snapshot_held' else ':'} {ending}" if ending else "."
        self._log.tell(
            built.template,
            kind,
            f"{verb} {named}{end}",
            at=at,
            by=built.template.owner,
            reason=reason,
            data={"snapshot": snapshot.pk},
        )
        return at
