"""The one writer of states of copies: a table, and filtered UPDATEs."""

from __future__ import annotations

import datetime as dt
from functools import partial

from django.db import transaction

from provisioner.audit_log.actions import record_event
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.states import log, sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged

C = WorkspaceCopy.State

COPY_TRANSITIONS: dict[WorkspaceCopy.State, tuple[WorkspaceCopy.State, ...]] = {
    C.WAITING: (C.TRANSFERRING, C.DELETING),
    C.TRANSFERRING: (C.READY, C.FAILED),
    C.READY: (C.TRANSFERRING, C.DELETING),
    C.FAILED: (C.TRANSFERRING, C.DELETING),
    C.DELETING: (C.DELETED, C.FAILED),
    C.DELETED: (),
}


def set_copy_state(
    copy: WorkspaceCopy,
    to: WorkspaceCopy.State,
    *,
    code: str = "",
    message: str = "",
    due_at: dt.datetime | None = None,
    event: str = "",
) -> None:
    """Move a copy. Only what has an `event` to tell is in the workspace's log.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    with transaction.atomic():
        moved = WorkspaceCopy.with_deleted.filter(
            pk=copy.pk, state__in=sources_of(COPY_TRANSITIONS, to=to)
        ).update(
            state=to,
            status_code=code,
            status_message=message if code else "",
            failed_at=clocks.database_now() if to == C.FAILED else None,
            **({"due_at": due_at} if due_at is not None else {}),
        )
        if not moved:
            raise StateChanged
        copy.refresh_from_db(
            fields=["state", "status_code", "status_message", "failed_at", "due_at"]
        )
        if event:
            record_event(copy.workspace, kind=f"copy_{to.value}", message=event)
        transaction.on_commit(
            partial(
                log.info,
                "copy_state_changed",
                copy_id=copy.pk,
                state=to.value,
                status_code=code,
            )
        )
