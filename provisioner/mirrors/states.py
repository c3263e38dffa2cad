"""The one writer of states of mirrors and copies: tables, and filtered UPDATEs."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.states import log, sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged
from provisioner.mirrors.models import Mirror, SnapshotCopy

M = Mirror.State
C = SnapshotCopy.State


MIRROR_TRANSITIONS: dict[Mirror.State, tuple[Mirror.State, ...]] = {
    M.CREATING: (M.READY, M.FAILED),
    M.READY: (M.TRANSFERRING,),
    M.TRANSFERRING: (M.READY, M.FAILED),
    M.FAILED: (M.CREATING, M.TRANSFERRING),
}

COPY_TRANSITIONS: dict[SnapshotCopy.State, tuple[SnapshotCopy.State, ...]] = {
    C.COPYING: (C.AVAILABLE, C.FAILED),
    C.FAILED: (C.COPYING,),
    C.AVAILABLE: (),
}


def set_mirror_state(
    mirror: Mirror,
    to: Mirror.State,
    *,
    message: str,
    code: str = "",
    actor: User | None = None,
) -> None:
    """Move a mirror, with an event of its template.

    Raises: StateChanged where the row is not in a state that leads here.
    """
    with transaction.atomic():
        moved = Mirror.objects.filter(
            pk=mirror.pk, state__in=sources_of(MIRROR_TRANSITIONS, to=to)
        ).update(state=to, status_code=code, status_message=message if code else "")
        if not moved:
            raise StateChanged
        mirror.refresh_from_db(fields=["state", "status_code", "status_message"])
        record_event(
            mirror.template,
            kind=f"mirror_{to.value}",
            message=f"Mirror at {mirror.site}: {message}",
            actor=actor,
        )
        transaction.on_commit(
            partial(
                log.info,
                "mirror_state_changed",
                mirror_id=mirror.pk,
                state=to.value,
                status_code=code,
            )
        )


def begin_copy(copy: SnapshotCopy) -> None:
    """Have a copy on its way, again where it failed.

    Raises: StateChanged.
    """
    _move(copy, C.COPYING)


def finish_copy(
    copy: SnapshotCopy, *, ontap_uuid: str, bytes: int, seconds: float
) -> None:
    """Have a copy that was seen at its site.

    Raises: StateChanged.
    """
    _move(
        copy,
        C.AVAILABLE,
        ontap_uuid=ontap_uuid,
        bytes=bytes,
        seconds=seconds,
        arrived_at=clocks.database_now(),
    )


def fail_copies(mirror: Mirror) -> None:
    """Have what was on its way to a mirror failed."""
    mirror.copies.filter(state__in=sources_of(COPY_TRANSITIONS, to=C.FAILED)).update(
        state=C.FAILED
    )


def _move(copy: SnapshotCopy, to: SnapshotCopy.State, **fields: object) -> None:
    moved = SnapshotCopy.objects.filter(
        pk=copy.pk, state__in=sources_of(COPY_TRANSITIONS, to=to)
    ).update(state=to, **fields)
    if not moved:
        raise StateChanged
    copy.refresh_from_db()
