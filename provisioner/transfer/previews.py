"""What pages say of work that could be transferred."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.engine.queries import operations_visible_to
from provisioner.transfer.queries import transfer_under_way
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.queries import snapshots_to_move_to, workspaces_visible_to
from provisioner.workspaces.unsubmitted import Findings, findings_of


@dataclass(frozen=True, kw_only=True)
class TransferPreview:
    """What of a workspace could be transferred, as the last look has found it.

    `look` is None before the first look, `under_way` the workspace that takes over.
    """

    workspace: Workspace
    newer: list[Snapshot]
    look: OperationOverview | None
    under_way: Workspace | None

    @property
    def has_looked(self) -> bool:
        return (
            self.look is not None
            and self.look.operation.state == Operation.State.SUCCEEDED
        )

    @property
    def found(self) -> list[Findings]:
        return findings_of(self.look.operation.findings if self.look else None)

    @property
    def blockers(self) -> list[str]:
        """Why it cannot be transferred as it is, in sentences."""
        if self.look is None:
            return []
        return list((self.look.operation.findings or {}).get("blockers", ()))

    @property
    def announcement(self) -> str:
        return self.look.announcement if self.look else ""


def find_transfer_preview(user: User, *, pk: int) -> TransferPreview | None:
    """Return what could be transferred of a workspace the person may see."""
    workspace = workspaces_visible_to(user).filter(pk=pk).first()
    if workspace is None:
        return None
    look = (
        operations_visible_to(user)
        .filter(subject=workspace.subject_id, kind=WorkspaceOperation.CHECK)
        .first()
    )
    transfer = transfer_under_way(workspace)
    return TransferPreview(
        workspace=workspace,
        newer=list(snapshots_to_move_to(workspace)),
        look=operation_overview(look) if look else None,
        under_way=transfer.workspace if transfer else None,
    )
