"""Transfers as pages and the API show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from provisioner.engine.models import Operation
from provisioner.transfer.models import Conflict, Transfer, TransferOperation
from provisioner.workspaces.models import Workspace

LEFT_TITLES = {
    "changed": "changed without being opened",
    "untracked": "untracked",
    "unnamed": "untracked, with names that are not UTF-8",
    "missing": "missing (nothing to transfer)",
    "shelved": "shelved changes, which stay on the server",
}


@dataclass(frozen=True, kw_only=True)
class TransferOverview:
    """The transfer of work into a workspace."""

    transfer: Transfer

    @property
    def is_done(self) -> bool:
        return self.transfer.transferred_at is not None

    @property
    def can_be_aborted(self) -> bool:
        """Whether it can be aborted, and nobody has requested that yet."""
        is_retiring = self.transfer.workspace.state == Workspace.State.RETIRING
        return self.transfer.can_be_aborted and not is_retiring

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """The conflicts left for a person, in the order of the steps."""
        return list(self.transfer.conflicts.all()) if self.is_done else []

    @property
    def left(self) -> list[tuple[str, int]]:
        """What was not transferred, as words and numbers."""
        counts = self.transfer.counts.get("left", {})
        return [
            (title, counts[kind])
            for kind, title in LEFT_TITLES.items()
            if kind in counts
        ]

    @property
    def left_changes(self) -> list[int]:
        """The shelved changes that stay in the older workspace."""
        return list(self.transfer.counts.get("left_changes", ()))


def transfer_of(workspace: Workspace) -> TransferOverview | None:
    """Return the transfer into a workspace, or None."""
    transfer = getattr(workspace, "transfer", None)
    return TransferOverview(transfer=transfer) if transfer else None


def transfer_under_way(source: Workspace) -> Transfer | None:
    """Return the running transfer out of a workspace, or None."""
    return transfers_under_way([source]).get(source.pk)


def transfers_under_way(sources: Sequence[Workspace]) -> dict[int, Transfer]:
    """Return the running transfers out of workspaces, by their keys."""
    transfers = (
        Transfer.objects.filter(
            source__in=sources,
            workspace__subject__operations__kind=TransferOperation.TRANSFER,
            workspace__subject__operations__state=Operation.State.RUNNING,
        )
        .select_related("workspace")
        .order_by("-pk")
    )
    return {transfer.source_id: transfer for transfer in transfers}
