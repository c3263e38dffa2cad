"""Snapshots as the page of a workspace shows them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, Max

from provisioner.engine.models import Operation
from provisioner.workspace_snapshots.models import (
    SnapshotParameters,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.models import (
    OF_SNAPSHOTS,
    Workspace,
    WorkspaceOperation,
)

LOOKED_AT = 20
"""How many operations with a snapshot its page looks at."""


@dataclass(frozen=True, kw_only=True)
class SnapshotsOf:
    """How many snapshots there are of a workspace, and when the newest was taken."""

    count: int
    newest_at: dt.datetime | None


def snapshots_overview(workspace: Workspace) -> SnapshotsOf:
    """Return what the page of a workspace shows, in one query."""
    found = snapshots_of(workspace).aggregate(
        count=Count("pk"), newest_at=Max("taken_at")
    )
    return SnapshotsOf(**found)


_TITLES = {"added": "Added", "changed": "Changed", "removed": "Removed"}


@dataclass(frozen=True, kw_only=True)
class Differences:
    """One kind of difference: how many there are, and the first of them.

    `is_in_snapshot`: they can be taken back.
    """

    title: str
    count: int
    paths: list[str]
    is_in_snapshot: bool

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.count - len(self.paths)


@dataclass(frozen=True, kw_only=True)
class SnapshotWork:
    """What was last done with a snapshot, and what is under way.

    `compared`, `taken` and `restored` are the last ones that succeeded; `failed` says
    why the last operation did not.
    """

    running: Operation | None = None
    compared: Operation | None = None
    taken: Operation | None = None
    restored: Operation | None = None
    failed: str = ""

    @property
    def differences(self) -> list[Differences]:
        found = (self.compared and self.compared.findings) or {}
        return [
            Differences(
                title=title,
                count=found["counts"][kind],
                paths=found[kind],
                is_in_snapshot=kind != "added",
            )
            for kind, title in _TITLES.items()
            if found
        ]

    @property
    def taken_path(self) -> str:
        return SnapshotParameters.of(self.taken).path if self.taken else ""


def snapshot_work(snapshot: WorkspaceSnapshot) -> SnapshotWork:
    """Return what the page of a snapshot shows, in one query."""
    operations = list(
        snapshot.workspace.operations.filter(
            kind__in=OF_SNAPSHOTS, parameters__snapshot=snapshot.name
        ).order_by("-pk")[:LOOKED_AT]
    )

    def newest(state: str, *kinds: str) -> Operation | None:
        fitting = (e for e in operations if e.state == state and e.kind in kinds)
        return next(fitting, None)

    ended_well = Operation.State.SUCCEEDED
    last = operations[0] if operations else None
    is_well = last is None or last.state in (Operation.State.RUNNING, ended_well)
    return SnapshotWork(
        running=newest(Operation.State.RUNNING, *OF_SNAPSHOTS),
        compared=newest(ended_well, WorkspaceOperation.COMPARE),
        taken=newest(ended_well, WorkspaceOperation.TAKE_BACK),
        restored=newest(ended_well, WorkspaceOperation.RESTORE_SNAPSHOT),
        failed="" if last is None or is_well else last.status_message,
    )
