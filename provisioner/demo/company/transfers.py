"""Transfers of work into workspaces of newer snapshots."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict

from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Ran
from provisioner.demo.company.studio import Studio
from provisioner.gateways.perforce.types import ToResolve
from provisioner.transfer.models import Conflict, Transfer
from provisioner.transfer.steps.conflicts import needs_resolve
from provisioner.transfer.steps.plan import Plan
from provisioner.workspaces.models import Workspace

IS_TRANSFERRED = 0.9


class Transfers:
    """Knows people's workspaces, and transfers work to newer ones."""

    def __init__(self, studio: Studio, *, log: Log) -> None:
        self._studio, self._log = studio, log
        self._there: dict[tuple[int, int], Workspace] = {}

    def source_for(self, workspace: Workspace) -> Workspace | None:
        """Return the older workspace whose work is transferred, None for most."""
        key = (workspace.owner.pk, workspace.template.pk)
        source = self._there.get(key)
        is_ready = workspace.state == Workspace.State.READY
        if not is_ready or workspace.purpose != Workspace.Purpose.DEVELOPMENT:
            return None
        self._there[key] = workspace
        if source is None or source.ready_at is None:
            return None
        is_newer = source.snapshot.change < workspace.snapshot.change
        is_there = source.ready_at < workspace.created_at
        if is_newer and is_there and self._studio.happens(IS_TRANSFERRED):
            return source
        return None

    def take_over(self, source: Workspace, workspace: Workspace, ran: Ran) -> None:
        """Add a transfer of the older workspace's work; the older one stays."""
        chance, owner = self._studio.chance, workspace.owner
        opened, untracked = chance.randrange(1, 14), chance.randrange(3)
        has_conflict = self._studio.happens(0.3)
        outcome = f"{source.name} stays, as you chose."
        if has_conflict:
            outcome = (
                f"{source.name} stays until you retire it: 1 of its files are left "
                "for you to decide."
            )
        transfer = self._studio.rows.add(
            Transfer(
                workspace=workspace,
                source=source,
                plan=asdict(
                    Plan(
                        client=source.client_name,
                        root=str(source.path),
                        opened=[],
                        changed=[],
                        pending=[],
                        untracked=[],
                        left={},
                        left_changes=[],
                    )
                ),
                planned_at=workspace.created_at,
                shelves=[],
                shelved_at=workspace.created_at,
                changes={},
                conflicts_left=int(has_conflict),
                counts={
                    "opened": opened,
                    "merged": opened // 2,
                    "untracked": untracked,
                    "changes": 1,
                    "left": {},
                    "left_changes": [],
                },
                outcome=outcome,
                retires_source=has_conflict,
                created_at=workspace.created_at,
                transferred_at=ran.ended_at,
            )
        )
        if has_conflict:
            folder = workspace.template.view_lines[0].split("...")[0]
            conflict = needs_resolve(
                ToResolve(
                    depot_file=f"{folder}README.md", path="README.md", from_revision="2"
                )
            )
            conflict.transfer, conflict.stage = transfer, Conflict.Stage.MERGE
            self._studio.rows.add(conflict)
        self._log.tell(
            source,
            "transfer_requested",
            f"Asked to transfer its work into {workspace.name}.",
            at=workspace.created_at,
            by=owner,
        )
        left = "; 1 are left for you to decide." if has_conflict else "."
        for about in (workspace, source):
            self._log.tell(
                about,
                "work_transferred",
                f"Transferred {opened:,} opened and {untracked:,} untracked files "
                f"from {source.name}{left}",
                at=ran.ended_at - dt.timedelta(milliseconds=20),
                by=owner,
                data={"from": source.pk, "to": workspace.pk},
            )
