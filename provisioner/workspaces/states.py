"""The one writer of a workspace's state: a table of moves, each a filtered UPDATE."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.states import log, sources_of
from provisioner.lib.refusals import StateChanged
from provisioner.workspaces.models import Workspace

W = Workspace.State


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


def set_workspace_state(
    workspace: Workspace,
    to: Workspace.State,
    *,
    code: str = "",
    message: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    purge_at: dt.datetime | None = None,
) -> None:
    """Move a workspace, with its event. The trash keeps it until `purge_at`.

    Raises: StateChanged where the row is not in a state that leads here.
    """
    fields: dict[str, Any] = {
        "state": to,
        "status_code": code,
        "status_message": message,
    }
    if to == W.READY and workspace.ready_at is None:
        fields["ready_at"] = timezone.now()
    if to == W.FAILED:
        fields |= {"failed_at": timezone.now(), "retired_at": None}
    if to == W.READY:
        fields |= {"trashed_at": None, "purge_at": None, "purge_seen_at": None}
    if to == W.TRASHED:
        now = timezone.now()
        fields |= {"trashed_at": now, "purge_at": purge_at or now}
        fields["purge_seen_at"] = None
    if to == W.RETIRED:
        fields["retired_at"] = timezone.now()
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
