"""Previews of transfers."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.engine.overviews import OperationOverview, operation_overview
from provisioner.engine.queries import operations_visible_to
from provisioner.transfer.queries import transfer_under_way
from provisioner.web.notices import Action, Level, Notice
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.queries import snapshots_to_move_to, workspaces_visible_to
from provisioner.workspaces.unsubmitted import Findings, findings_of


@dataclass(frozen=True, kw_only=True)
class TransferPreview:
    """What a transfer would move, as the last check found it.

    `check` is None before the first check; `under_way` is the new workspace of a
    running transfer.
    """

    workspace: Workspace
    newer: list[Snapshot]
    check: OperationOverview | None
    under_way: Workspace | None

    @property
    def has_checked(self) -> bool:
        return (
            self.check is not None
            and self.check.operation.state == Operation.State.SUCCEEDED
        )

    @property
    def is_possible(self) -> bool:
        """Whether work can be transferred now, as far as the rows show."""
        is_ready = self.workspace.state == Workspace.State.READY
        return is_ready and self.under_way is None and bool(self.newer)

    @property
    def notices(self) -> list[Notice]:
        """What prevents the transfer, or should be known beforehand."""
        if self.under_way is not None:
            return [self._under_way(self.under_way)]
        if self.workspace.state != Workspace.State.READY:
            said = f"{self.workspace.name} is not ready. Nothing can be transferred."
        elif not self.newer:
            template = self.workspace.template.name
            said = f"{self.workspace.name} is at the newest snapshot of {template}."
        elif self.blockers:
            title = "Work cannot be transferred yet"
            return [_warning(title, items=tuple(self.blockers))]
        elif self.check_failed:
            assert self.check is not None
            failure = self.check.operation.status_message
            return [_warning("The last check failed", texts=(failure,))]
        else:
            return []
        back = reverse("workspace-detail", args=[self.workspace.pk])
        show = Action(label=f"Show {self.workspace.name}", url=back)
        return [Notice(level=Level.INFO, texts=(said,), actions=(show,))]

    @staticmethod
    def _under_way(into: Workspace) -> Notice:
        url = reverse("workspace-detail", args=[into.pk])
        return Notice(
            level=Level.INFO,
            texts=(f"Its work is being transferred into {into.name}.",),
            actions=(Action(label=f"Show {into.name}", url=url),),
        )

    @property
    def check_failed(self) -> bool:
        if self.check is None or self.check.is_running:
            return False
        return not self.has_checked

    @property
    def found(self) -> list[Findings]:
        return findings_of(self.check.operation.findings if self.check else None)

    @property
    def blockers(self) -> list[str]:
        """Why it cannot be transferred as it is, in sentences."""
        if self.check is None:
            return []
        return list((self.check.operation.findings or {}).get("blockers", ()))

    @property
    def announcement(self) -> str:
        return self.check.announcement if self.check else ""


def _warning(
    title: str, *, texts: tuple[str, ...] = (), items: tuple[str, ...] = ()
) -> Notice:
    return Notice(
        level=Level.WARNING, title=title, texts=texts, items=items, is_urgent=True
    )


def find_transfer_preview(user: User, *, pk: int) -> TransferPreview | None:
    """Return the preview for a workspace that the person may see, or None."""
    workspace = workspaces_visible_to(user).filter(pk=pk).first()
    if workspace is None:
        return None
    check = (
        operations_visible_to(user)
        .filter(subject=workspace.subject_id, kind=WorkspaceOperation.CHECK)
        .first()
    )
    transfer = transfer_under_way(workspace)
    return TransferPreview(
        workspace=workspace,
        newer=list(snapshots_to_move_to(workspace)),
        check=operation_overview(check) if check else None,
        under_way=transfer.workspace if transfer else None,
    )
