"""Snapshots as the page of a workspace shows them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, Max

from provisioner.engine.models import Operation
from provisioner.workspace_snapshots.models import (
    SnapshotParameters,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.queries import (
    HeldSpace,
    held_by_snapshots,
    snapshots_of,
)
from provisioner.workspaces.models import (
    OF_SNAPSHOTS,
    Workspace,
    WorkspaceOperation,
)

LOOKED_AT = 20
"""How many operations with a snapshot its page looks at."""


@dataclass(frozen=True, kw_only=True)
class SnapshotsOf:
    """How many snapshots there are of a workspace, and when the newest was taken.

    `held` is None before they were measured.
    """

    count: int
    newest_at: dt.datetime | None
    held: HeldSpace | None


def snapshots_overview(workspace: Workspace) -> SnapshotsOf:
    """Return what the page of a workspace shows, in two queries."""
    found = snapshots_of(workspace).aggregate(
        count=Count("pk"), newest_at=Max("taken_at")
    )
    policies = SnapshotPolicy.objects.filter(site=workspace.site_id)
    return SnapshotsOf(**found, held=held_by_snapshots(workspace, policies))


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
    def is_stale(self) -> bool:
        """Whether files came back after the workspace was compared."""
        if self.compared is None:
            return False
        later = (self.taken, self.restored)
        return any(each is not None and each.pk > self.compared.pk for each in later)

    @property
    def taken_path(self) -> str:
        if self.taken is None:
            return ""
        return SnapshotParameters.of(self.taken).path or "what had failed"

    @property
    def can_retry(self) -> bool:
        """Whether files are left that could not be written, and nothing runs."""
        return self.running is None and bool(failed_paths(self.restored, self.taken))


def failed_paths(*operations: Operation | None) -> list[str]:
    """Return which paths the newest of some operations could not write, the first."""
    ended = [each for each in operations if each is not None]
    newest = max(ended, key=lambda each: each.pk, default=None)
    found = (newest and newest.findings) or {}
    return [path for path, _ in found.get("failed", [])]


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
