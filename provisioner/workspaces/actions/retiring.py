"""Retire, restore, purge and retry workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib.refusals import ActionRefused, InvalidRequest, NotAllowed
from provisioner.workspaces.events import asks_how_to_make, asks_what_stays
from provisioner.workspaces.models import (
    RetireParameters,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import last_operation, restorable
from provisioner.workspaces.refusals import (
    NothingToRestore,
    NothingToRetry,
    NotInTrash,
    WorkspaceNotReady,
    WorkspaceRetired,
)
from provisioner.workspaces.states import set_workspace_state

ASKED = {
    Unsubmitted.REFUSE: "Requested its retirement.",
    Unsubmitted.RESCUE: "Requested its retirement, rescuing unsubmitted work.",
    Unsubmitted.DISCARD: "Requested its retirement, discarding unsubmitted work.",
}


def workspace_retire(
    *,
    by: User,
    workspace: Workspace,
    unsubmitted: str = Unsubmitted.REFUSE,
    purge: bool = False,
    reason: str = "",
    as_abandoned: bool = False,
) -> Operation:
    """Retire a workspace into the trash, or with `purge` past it.

    With `as_abandoned`, the abandoned page shows its progress.
    `unsubmitted` says what happens to unsubmitted work. A repeated call while it is
    being retired returns the running operation.

    Raises: NotAllowed, InvalidRequest, WorkspaceRetired, WorkspaceNotReady,
    BeingTransferred.
    """
    if unsubmitted not in Unsubmitted.values:
        raise InvalidRequest(f"“{unsubmitted}” is not a choice for unsubmitted work.")
    with transaction.atomic():
        workspace = locked(workspace)
        refused = refused_retirements(by=by, workspaces=[workspace])
        if workspace.pk in refused:
            raise refused[workspace.pk]
        running = _running(workspace)
        if running is not None and running.kind == WorkspaceOperation.RETIRE:
            return running
        _cancel(running, message=f"{by} retired the workspace.")
        return start_retirement(
            by=by,
            workspace=workspace,
            parameters=RetireParameters(unsubmitted=unsubmitted, purge=purge),
            reason=reason or ASKED[Unsubmitted(unsubmitted)],
            as_abandoned=as_abandoned,
        )


def start_retirement(
    *,
    by: User,
    workspace: Workspace,
    parameters: RetireParameters,
    reason: str,
    as_abandoned: bool = False,
) -> Operation:
    """Retire a locked workspace that nothing else is under way for.

    Raises: StateChanged.
    """
    set_workspace_state(
        workspace,
        Workspace.State.RETIRING,
        message=reason,
        actor=by,
        as_abandoned=as_abandoned,
    )
    return start_operation(
        WorkspaceOperation.RETIRE, by=by, about=workspace, parameters=parameters
    )


def refused_retirements(
    *, by: User, workspaces: Sequence[Workspace]
) -> dict[int, ActionRefused]:
    """Return why `workspace_retire` would refuse workspaces, by their keys.

    It takes the same number of queries for many as for one.
    """
    answers: Sequence[tuple[Any, Any]] = asks_what_stays.send(
        Workspace, workspaces=workspaces
    )
    refused: dict[int, ActionRefused] = {}
    for _, staying in answers:
        refused |= staying
    for workspace in workspaces:
        if not can_change_workspace(by, workspace):
            refused[workspace.pk] = NotAllowed()
        elif workspace.is_put_away:
            refused[workspace.pk] = WorkspaceRetired(name=workspace.name)
    return refused


def workspace_restore(*, by: User, workspace: Workspace) -> Operation:
    """Restore a workspace from the trash, or stop its retirement.

    A repeated call while it is being restored returns the running operation.

    Raises: NotAllowed, NothingToRestore, WorkspaceRetired.
    """
    with transaction.atomic():
        workspace = locked(workspace)
        refused = refused_restores(by=by, workspaces=[workspace])
        if workspace.pk in refused:
            raise refused[workspace.pk]
        running = _running(workspace)
        if running is not None and running.kind == WorkspaceOperation.RESTORE:
            return running
        _cancel(running, message=f"{by} restored the workspace.")
        # The CI job that it was made for has ended.
        Workspace.objects.filter(pk=workspace.pk).update(heartbeat_seconds=None)
        set_workspace_state(
            workspace,
            Workspace.State.RESTORING,
            message="Requested its restore.",
            actor=by,
        )
        return start_operation(WorkspaceOperation.RESTORE, by=by, about=workspace)


def refused_restores(
    *, by: User, workspaces: Sequence[Workspace]
) -> dict[int, ActionRefused]:
    """Return why `workspace_restore` would refuse workspaces, by their keys.

    It takes the same number of queries for many as for one.
    """
    going = (Workspace.State.RETIRED, Workspace.State.PURGING)
    can_be = restorable(workspaces)
    restoring = _subjects_of_running(workspaces, WorkspaceOperation.RESTORE)
    refused: dict[int, ActionRefused] = {}
    for workspace in workspaces:
        if not can_change_workspace(by, workspace):
            refused[workspace.pk] = NotAllowed()
        elif workspace.state in going:
            refused[workspace.pk] = WorkspaceRetired(name=workspace.name)
        elif workspace.pk not in can_be and workspace.subject_id not in restoring:
            refused[workspace.pk] = NothingToRestore(name=workspace.name)
    return refused


def workspace_purge(*, by: User, workspace: Workspace) -> Operation:
    """Request to purge a workspace from the trash.

    A repeated call while it is being purged returns the running operation.

    Raises: NotAllowed, NotInTrash, WorkspaceRetired.
    """
    with transaction.atomic():
        workspace = locked(workspace)
        refused = refused_purges(by=by, workspaces=[workspace])
        if workspace.pk in refused:
            raise refused[workspace.pk]
        running = _running(workspace)
        if running is not None and running.kind == WorkspaceOperation.PURGE:
            return running
        return _purge(by=by, workspace=workspace)


def refused_purges(
    *, by: User, workspaces: Sequence[Workspace]
) -> dict[int, ActionRefused]:
    """Return why `workspace_purge` would refuse workspaces, by their keys.

    It takes the same number of queries for many as for one.
    """
    purging = _subjects_of_running(workspaces, WorkspaceOperation.PURGE)
    refused: dict[int, ActionRefused] = {}
    for workspace in workspaces:
        is_trashed = workspace.state == Workspace.State.TRASHED
        if not can_change_workspace(by, workspace):
            refused[workspace.pk] = NotAllowed()
        elif workspace.state == Workspace.State.RETIRED:
            refused[workspace.pk] = WorkspaceRetired(name=workspace.name)
        elif not is_trashed and workspace.subject_id not in purging:
            refused[workspace.pk] = NotInTrash(name=workspace.name)
    return refused


def _purge(*, by: User, workspace: Workspace) -> Operation:
    set_workspace_state(
        workspace,
        Workspace.State.PURGING,
        message="Purge requested.",
        actor=by,
    )
    return start_operation(WorkspaceOperation.PURGE, by=by, about=workspace)


def workspace_retry(*, by: User, workspace: Workspace) -> Operation:
    """Retry what failed: provisioning, retiring, restoring or purging.

    Raises: NotAllowed, NothingToRetry, WorkspaceNotReady.
    """
    permissions.require(can_change_workspace(by, workspace))
    with transaction.atomic():
        workspace = locked(workspace)
        if workspace.is_moving:
            raise WorkspaceNotReady(
                name=workspace.name, state=workspace.get_state_display().lower()
            )
        if workspace.state != Workspace.State.FAILED:
            raise NothingToRetry(name=workspace.name)
        last = last_operation(workspace)
        if last is not None and last.kind == WorkspaceOperation.RETIRE:
            return workspace_retire(
                by=by,
                workspace=workspace,
                as_abandoned=workspace.retired_as_abandoned,
                **asdict(RetireParameters.of(last)),
            )
        if last is not None and last.kind == WorkspaceOperation.RESTORE:
            return workspace_restore(by=by, workspace=workspace)
        if last is not None and last.kind == WorkspaceOperation.PURGE:
            return _purge(by=by, workspace=workspace)
        set_workspace_state(
            workspace,
            Workspace.State.PROVISIONING,
            message="Requested a retry.",
            actor=by,
        )
        asked = asks_how_to_make.send(Workspace, workspace=workspace)
        kinds = (kind for _, kind in asked if kind is not None)
        kind = next(kinds, WorkspaceOperation.PROVISION)
        return start_operation(kind, by=by, about=workspace)


def locked(workspace: Workspace) -> Workspace:
    """Lock a workspace after its running operation, in the same order as the jobs."""
    list(_under_way(workspace).select_for_update().values_list("pk"))
    return Workspace.objects.select_for_update(of=("self",)).get(pk=workspace.pk)


def _subjects_of_running(workspaces: Sequence[Workspace], kind: str) -> set[int]:
    """Return the subjects of those that a running operation of this kind is about."""
    running = Operation.objects.filter(
        subject__in=[workspace.subject_id for workspace in workspaces],
        kind=kind,
        state=Operation.State.RUNNING,
    )
    return set(running.values_list("subject", flat=True))


def _running(workspace: Workspace) -> Operation | None:
    return _under_way(workspace).first()


def _under_way(workspace: Workspace) -> QuerySet[Operation]:
    """Return a workspace's running operation, without reading its subject."""
    return Operation.objects.filter(
        subject=workspace.subject_id, state=Operation.State.RUNNING
    ).order_by("pk")


def _cancel(operation: Operation | None, *, message: str) -> None:
    """End the running operation. Its running step settles before another one starts."""
    if operation is not None:
        engine_states.cancel_operation(operation, message=message)
