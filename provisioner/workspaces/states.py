"""The one writer of states of workspaces and clients: tables, and filtered UPDATEs."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Step
from provisioner.engine.states import holding, log, sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged
from provisioner.workspaces.models import Workspace, WorkspaceClient

W = Workspace.State
C = WorkspaceClient.State


WORKSPACE_TRANSITIONS: dict[Workspace.State, tuple[Workspace.State, ...]] = {
    W.PROVISIONING: (W.READY, W.FAILED, W.RETIRING),
    W.READY: (W.RETIRING, W.FAILED),
    W.RETIRING: (W.TRASHED, W.READY, W.RESTORING, W.FAILED),
    W.TRASHED: (W.RESTORING, W.PURGING, W.FAILED),
    W.RESTORING: (W.READY, W.RETIRING, W.FAILED),
    W.PURGING: (W.RETIRED, W.FAILED),
    W.FAILED: (W.PROVISIONING, W.RETIRING, W.RESTORING, W.PURGING),
    # Only where its clone was found to be there all the same: see the drift check.
    W.RETIRED: (W.FAILED,),
}

# A retirement settles; another may go on with what was reverted, or came back in part.
# Whatever it is in, a restore may find it gone, or flush it.
CLIENT_TRANSITIONS: dict[WorkspaceClient.State, tuple[WorkspaceClient.State, ...]] = {
    C.WHOLE: (C.WHOLE, C.SETTLING, C.DEFINED),
    C.SETTLING: (C.WHOLE, C.SETTLING, C.REVERTED, C.DELETED, C.DEFINED, C.FLUSHED),
    C.REVERTED: (C.SETTLING, C.REVERTED, C.DELETED, C.DEFINED, C.FLUSHED),
    C.DELETED: (C.DELETED, C.REVERTED, C.DEFINED, C.FLUSHED),
    C.DEFINED: (C.DEFINED, C.REVERTED, C.DELETED, C.FLUSHED),
    C.FLUSHED: (C.FLUSHED, C.REVERTED, C.DELETED, C.DEFINED, C.WHOLE),
}


def set_workspace_state(
    workspace: Workspace,
    to: Workspace.State,
    *,
    code: str = "",
    message: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    purge_at: dt.datetime | None = None,
    as_abandoned: bool = False,
) -> None:
    """Move a workspace, with its event. The trash keeps it until `purge_at`.

    The abandoned page lists what is retired `as_abandoned`.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    fields: dict[str, Any] = {
        "state": to,
        "was_ready": to == W.RETIRING and workspace.state == W.READY,
        "status_code": code,
        "status_message": message,
    }
    if to in (W.RETIRING, W.READY, W.PROVISIONING, W.RETIRED):
        fields["retired_as_abandoned"] = as_abandoned
    if to == W.READY and workspace.ready_at is None:
        fields["ready_at"] = clocks.database_now()
    if to == W.FAILED:
        fields |= {"failed_at": clocks.database_now(), "retired_at": None}
    if to == W.READY:
        fields |= {"trashed_at": None, "purge_at": None, "purge_seen_at": None}
    if to == W.TRASHED:
        now = clocks.database_now()
        fields |= {"trashed_at": now, "purge_at": purge_at or now}
        fields["purge_seen_at"] = None
    if to == W.RETIRED:
        fields["retired_at"] = clocks.database_now()
    with transaction.atomic():
        moved = Workspace.objects.filter(
            pk=workspace.pk, state__in=sources_of(WORKSPACE_TRANSITIONS, to=to)
        ).update(**fields)
        if not moved:
            raise StateChanged
        for field, value in fields.items():
            setattr(workspace, field, value)
        record_event(
            workspace,
            kind=f"workspace_{to.value}",
            message=message or f"{to.label}.",
            actor=actor,
            data=data,
        )
        transaction.on_commit(
            partial(
                log.info,
                "workspace_state_changed",
                workspace_id=workspace.pk,
                state=to.value,
                status_code=code,
            )
        )


def mark_independent(
    workspace: Workspace, *, message: str, actor: User | None = None
) -> bool:
    """Record that a clone was split; return whether it was one until now."""
    now = clocks.database_now()
    with transaction.atomic():
        clones = Workspace.objects.filter(pk=workspace.pk, split_at=None)
        if not clones.update(split_at=now):
            return False
        workspace.split_at = now
        record_event(
            workspace, kind="workspace_independent", message=message, actor=actor
        )
    return True


def client_of(workspace: Workspace) -> WorkspaceClient:
    """Return the current state of a workspace's client."""
    return WorkspaceClient.objects.get_or_create(workspace=workspace)[0]


def move_client(
    client: WorkspaceClient, to: WorkspaceClient.State, *, by: Step, **fields: Any
) -> None:
    """Move a client, with other columns, while the step's attempt is current.

    Raises: StepCutShort if it is not, StateChanged if the table forbids the move.
    """
    with holding(by):
        moved = WorkspaceClient.objects.filter(
            pk=client.pk, state__in=sources_of(CLIENT_TRANSITIONS, to=to)
        ).update(state=to, **fields)
    if not moved:
        raise StateChanged
    client.state = to
    for field, value in fields.items():
        setattr(client, field, value)


def move_client_lock(client: WorkspaceClient, *, is_unlocked: bool, by: Step) -> None:
    """Record whether a client's lock has to be given back to its owner."""
    move_client(client, C(client.state), by=by, is_unlocked=is_unlocked)


def give_back_client(client: WorkspaceClient, *, by: Step) -> None:
    """Record that somebody may work there from now on, though not all is restored."""
    if not client.is_whole and client.given_back_at is None:
        now = clocks.database_now()
        move_client(client, C(client.state), by=by, given_back_at=now)


def make_client_whole(client: WorkspaceClient, *, by: Step) -> None:
    """Mark the client whole as of this step's operation, and drop its kept form."""
    is_known = client.is_whole and client.since_id == by.operation_id
    if not is_known:
        move_client(
            client,
            C.WHOLE,
            by=by,
            spec="",
            given_back_at=None,
            since_id=by.operation_id,
        )
