"""The one writer of states of runs: filtered UPDATEs, each with its event."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.states import sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged
from provisioner.qualification.models import UNDER_WAY, QualificationRun

S = QualificationRun.State

QUALIFICATION_TRANSITIONS: dict[
    QualificationRun.State, tuple[QualificationRun.State, ...]
] = {
    S.WAITING: (S.RUNNING, S.FAILED),
    S.RUNNING: (S.DONE, S.FAILED),
    S.FAILED: (S.WAITING, S.RUNNING),
    S.DONE: (),
}


def set_run_state(
    run: QualificationRun,
    to: QualificationRun.State,
    *,
    message: str,
    code: str = "",
    actor: User | None = None,
) -> None:
    """Move a run, with its event.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    ended_at = None if to in UNDER_WAY else clocks.database_now()
    with transaction.atomic():
        moved = QualificationRun.objects.filter(
            pk=run.pk, state__in=sources_of(QUALIFICATION_TRANSITIONS, to=to)
        ).update(
            state=to,
            status_code=code,
            status_message=message if code else "",
            ended_at=ended_at,
        )
        if not moved:
            raise StateChanged
        run.refresh_from_db(
            fields=["state", "status_code", "status_message", "ended_at"]
        )
        record_event(
            run,
            kind=f"qualification_{to.value}",
            message=message,
            actor=actor,
        )
