"""Recoveries as the page of a workspace shows them."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.copies.models import WorkspaceCopy
from provisioner.lib.prepared import Prepared
from provisioner.recovery.models import Recovery
from provisioner.recovery.queries import answers
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace


@dataclass(frozen=True, kw_only=True)
class RecoveriesOf:
    """What a workspace was restored from, and the copies that it can be restored from.

    `copies` is empty for those who may not restore it now.
    """

    recovery: Recovery | None
    copies: list[WorkspaceCopy]


_USABLE_COPIES = Prepared(
    lambda workspace: (
        WorkspaceCopy.objects.filter(
            workspace=workspace, snapshots__arrived_at__isnull=False, is_released=False
        )
        .exclude(state=WorkspaceCopy.State.DELETING)
        .select_related("site")
        .distinct()
    ),
)
_RECOVERY = Prepared(
    lambda workspace: Recovery.objects.filter(workspace=workspace).select_related(
        "source__site"
    ),
)


def recoveries_of(workspace: Workspace, user: User) -> RecoveriesOf:
    """Return what the page of a workspace shows, in two or three queries."""
    copies = _USABLE_COPIES.rows(workspace.pk)
    may_restore = can_change_workspace(user, workspace) and (
        permissions.can_administer(user) or bool(copies and not answers(workspace.site))
    )
    return RecoveriesOf(
        recovery=_RECOVERY.first(workspace.pk),
        copies=copies if may_restore else [],
    )
