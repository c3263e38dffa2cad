"""What pages and API say of work that was brought into a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from provisioner.engine.models import Operation
from provisioner.lib.storable import shown_json
from provisioner.transfer.models import Carry, TransferOperation
from provisioner.workspaces.models import Workspace

LEFT_TITLES = {
    "changed": "changed without being opened",
    "untracked": "untracked",
    "unnamed": "untracked, with names that are not UTF-8",
    "missing": "missing (nothing to take along)",
    "shelved": "shelved changes, which stay on the server",
}


@dataclass(frozen=True, kw_only=True)
class CarryOverview:
    """How work came into a workspace."""

    carry: Carry

    @property
    def is_done(self) -> bool:
        return self.carry.carried_at is not None

    @property
    def can_be_aborted(self) -> bool:
        workspace = self.carry.workspace
        return workspace.ready_at is None and not (
            workspace.is_put_away or workspace.state == Workspace.State.RETIRING
        )

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        return shown_json(self.carry.all_conflicts) if self.is_done else []

    @property
    def left(self) -> list[tuple[str, int]]:
        """What was not taken along, as words and numbers."""
        counts = self.carry.counts.get("left", {})
        return [
            (title, counts[kind])
            for kind, title in LEFT_TITLES.items()
            if kind in counts
        ]

    @property
    def left_changes(self) -> list[int]:
        """The shelved changes that stay as they are in the older workspace."""
        return list(self.carry.counts.get("left_changes", ()))


def carry_of(workspace: Workspace) -> CarryOverview | None:
    """Return how work came into a workspace, None where none did."""
    carry = getattr(workspace, "carry", None)
    return CarryOverview(carry=carry) if carry else None


def carry_under_way(source: Workspace) -> Carry | None:
    """Return how a workspace's work is being brought forward now, None if it is not."""
    return (
        Carry.objects.select_related("workspace__site", "workspace__template")
        .filter(
            source=source,
            workspace__subject__operations__kind=TransferOperation.TRANSFER,
            workspace__subject__operations__state=Operation.State.RUNNING,
        )
        .first()
    )
