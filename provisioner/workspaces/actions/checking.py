"""Check a workspace for unsubmitted work on demand."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.workspaces.actions.retiring import locked
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import NothingToCheck, WorkspaceNotReady


def workspace_check(*, by: User, workspace: Workspace) -> Operation:
    """Check a workspace for unsubmitted work, which changes nothing.

    A repeated call during the check returns the running operation.

    Raises: NotAllowed, NothingToCheck, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    if not workspace.holds_work:
        raise NothingToCheck(name=workspace.name)
    with transaction.atomic():
        workspace = locked(workspace)
        if workspace.state != Workspace.State.READY:
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        running = workspace.operations.filter(state=Operation.State.RUNNING).first()
        if running is not None and running.kind != WorkspaceOperation.CHECK:
            raise WorkspaceNotReady(name=workspace.name, state="busy")
        if running is not None:
            return running
        return start_operation(WorkspaceOperation.CHECK, by=by, about=workspace)
