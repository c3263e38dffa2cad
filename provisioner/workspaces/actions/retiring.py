"""Taking a workspace back, and going on with one that failed."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.workspaces import permissions, states
from provisioner.workspaces.actions.starting import start_operation
from provisioner.workspaces.errors import (
    NothingToRetry,
    WorkspaceNotReady,
    WorkspaceRetired,
)
from provisioner.workspaces.models import Operation, Workspace


def workspace_retire(
    *, by: User, workspace: Workspace, discard: bool = False
) -> Operation:
    """Ask to take a workspace back; with `discard`, unsaved work and all.

    Asking again while it is being retired answers with the operation under way.

    Raises: NotAllowed, WorkspaceRetired.
    """
    permissions.require(permissions.can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.state == Workspace.State.RETIRED:
            raise WorkspaceRetired(name=workspace.name)
        running = workspace.operations.filter(state=Operation.State.RUNNING).first()
        if running is not None:
            if running.kind == Operation.Kind.RETIRE:
                return running
            states.end_operation(
                running,
                Operation.State.CANCELLED,
                code="retired",
                message=f"{by} retired the workspace.",
            )
            states.skip_waiting_steps(running)
        states.set_workspace_state(
            workspace,
            Workspace.State.RETIRING,
            message="Asked to retire it, and to discard what is not submitted."
            if discard
            else "Asked to retire it.",
            actor=by,
        )
        return start_operation(
            Operation.Kind.RETIRE,
            by=by,
            workspace=workspace,
            parameters={"discard": discard},
        )


def workspace_retry(*, by: User, workspace: Workspace) -> Operation:
    """Ask to go on with a workspace that failed while it was being made.

    Raises: NotAllowed, NothingToRetry, WorkspaceNotReady.
    """
    permissions.require(permissions.can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update(of=("self",)).get(
            pk=workspace.pk
        )
        if workspace.state in (
            Workspace.State.PROVISIONING,
            Workspace.State.RETIRING,
        ):
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        if workspace.state != Workspace.State.FAILED:
            raise NothingToRetry(name=workspace.name)
        last = workspace.operations.first()
        if last is not None and last.kind == Operation.Kind.RETIRE:
            discard = bool(last.parameters.get("discard"))
            return workspace_retire(by=by, workspace=workspace, discard=discard)
        states.set_workspace_state(
            workspace,
            Workspace.State.PROVISIONING,
            message="Asked to try again.",
            actor=by,
        )
        return start_operation(Operation.Kind.PROVISION, by=by, workspace=workspace)
