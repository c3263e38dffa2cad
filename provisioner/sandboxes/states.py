"""The one writer of states of sandboxes: a table, and filtered UPDATEs."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.states import log, sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged
from provisioner.sandboxes.models import HOST_NOT_ASKED, Sandbox

S = Sandbox.State

SANDBOX_TRANSITIONS: dict[Sandbox.State, tuple[Sandbox.State, ...]] = {
    S.CREATING: (S.READY, S.FAILED, S.RETIRING),
    S.READY: (S.STOPPED, S.RETIRING),
    S.STOPPED: (S.READY, S.STARTING, S.RETIRING),
    S.STARTING: (S.READY, S.FAILED, S.RETIRING),
    S.FAILED: (S.CREATING, S.STARTING, S.RETIRING),
    S.RETIRING: (S.RETIRED, S.FAILED),
    S.RETIRED: (),
}


def note_left_nowhere(sandbox: Sandbox, *, message: str) -> None:
    """Record that a host was asked after all what is left of a retired sandbox."""
    with transaction.atomic():
        noted = Sandbox.with_retired.filter(
            pk=sandbox.pk, state=S.RETIRED, status_code=HOST_NOT_ASKED
        ).update(status_code="", status_message="")
        if noted:
            record_event(sandbox, kind="sandbox_host_cleared", message=message)


def set_sandbox_state(
    sandbox: Sandbox,
    to: Sandbox.State,
    *,
    message: str,
    code: str = "",
    reason: str = "",
    actor: User | None = None,
) -> None:
    """Move a sandbox, with its event.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    now = clocks.database_now()
    ends = {
        S.READY: {"ready_at": now},
        S.RETIRED: {"retired_at": now},
    }.get(to, {})
    with transaction.atomic():
        moved = Sandbox.with_retired.filter(
            pk=sandbox.pk, state__in=sources_of(SANDBOX_TRANSITIONS, to=to)
        ).update(
            state=to,
            status_code=code,
            status_message=message if code else "",
            **ends,
        )
        if not moved:
            raise StateChanged
        sandbox.refresh_from_db(
            fields=["state", "status_code", "status_message", *ends]
        )
        record_event(
            sandbox,
            kind=f"sandbox_{to.value}",
            message=message,
            reason=reason,
            actor=actor,
        )
        transaction.on_commit(
            partial(
                log.info,
                "sandbox_state_changed",
                sandbox_id=sandbox.pk,
                state=to.value,
                status_code=code,
            )
        )
