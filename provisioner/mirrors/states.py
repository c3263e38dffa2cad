"""The one writer of states of mirrors and their snapshots: tables, filtered UPDATEs."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.states import log, sources_of
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged
from provisioner.mirrors.models import Mirror, MirroredSnapshot

M = Mirror.State
S = MirroredSnapshot.State

MIRROR_TRANSITIONS: dict[Mirror.State, tuple[Mirror.State, ...]] = {
    M.CREATING: (M.READY, M.FAILED),
    M.READY: (M.CREATING, M.TRANSFERRING, M.FAILED, M.DELETING, M.PROMOTING),
    M.TRANSFERRING: (M.READY, M.FAILED),
    M.FAILED: (M.CREATING, M.TRANSFERRING, M.DELETING, M.PROMOTING),
    M.DELETING: (M.DELETED, M.FAILED, M.GIVEN_UP),
    M.DELETED: (),
    M.PROMOTING: (M.PROMOTED, M.FAILED),
    M.PROMOTED: (),
    M.FORMER: (M.RETURNING, M.GIVING_UP),
    M.RETURNING: (M.READY, M.FORMER),
    M.GIVING_UP: (M.GIVEN_UP, M.FORMER),
    M.GIVEN_UP: (M.DELETING,),
}

MIRRORED_SNAPSHOT_TRANSITIONS: dict[
    MirroredSnapshot.State, tuple[MirroredSnapshot.State, ...]
] = {
    S.TRANSFERRING: (S.AVAILABLE, S.FAILED),
    S.FAILED: (S.TRANSFERRING, S.GONE),
    S.AVAILABLE: (S.GONE,),
    S.GONE: (S.TRANSFERRING,),
    S.ONLY_THERE: (S.GONE,),
}


def set_mirror_state(
    mirror: Mirror,
    to: Mirror.State,
    *,
    message: str,
    code: str = "",
    actor: User | None = None,
) -> None:
    """Move a mirror, with its event.

    Raises: StateChanged if the row is in a state that does not lead here.
    """
    with transaction.atomic():
        moved = Mirror.with_deleted.filter(
            pk=mirror.pk, state__in=sources_of(MIRROR_TRANSITIONS, to=to)
        ).update(
            state=to,
            status_code=code,
            status_message=message if code else "",
            failed_at=clocks.database_now() if code else None,
        )
        if not moved:
            raise StateChanged
        mirror.refresh_from_db(
            fields=["state", "status_code", "status_message", "failed_at"]
        )
        record_event(mirror, kind=f"mirror_{to.value}", message=message, actor=actor)
        transaction.on_commit(
            partial(
                log.info,
                "mirror_state_changed",
                mirror_id=mirror.pk,
                state=to.value,
                status_code=code,
            )
        )


def begin_transfer_of(mirrored: MirroredSnapshot) -> None:
    """Mark a snapshot as being transferred, again after it failed or was gone.

    Raises: StateChanged.
    """
    _move(mirrored, S.TRANSFERRING)


def mark_available(
    mirrored: MirroredSnapshot,
    *,
    ontap_uuid: str,
    bytes: int,
    seconds: float,
    compared_files: int,
) -> None:
    """Mark a snapshot as arrived at the mirror's site.

    Raises: StateChanged.
    """
    _move(
        mirrored,
        S.AVAILABLE,
        ontap_uuid=ontap_uuid,
        bytes=bytes,
        seconds=seconds,
        compared_files=compared_files,
        arrived_at=clocks.database_now(),
    )


def mark_failed(mirror: Mirror) -> None:
    """Mark the snapshots that are being transferred to a mirror as failed."""
    _move_all(mirror.snapshots.all(), S.FAILED)


def mark_gone(mirror: Mirror) -> None:
    """Mark all snapshots of a mirror as gone, also those that never arrived."""
    _move_all(mirror.snapshots.all(), S.GONE)


def mark_missing(mirror: Mirror, *, there: Collection[str]) -> None:
    """Mark the arrived snapshots as gone that are not among these ONTAP UUIDs."""
    arrived = mirror.snapshots.filter(state__in=(S.AVAILABLE, S.ONLY_THERE))
    _move_all(arrived.exclude(ontap_uuid__in=there), S.GONE)


def _move_all(rows: QuerySet[MirroredSnapshot], to: MirroredSnapshot.State) -> None:
    sources = sources_of(MIRRORED_SNAPSHOT_TRANSITIONS, to=to)
    rows.filter(state__in=sources).update(state=to)


def _move(
    mirrored: MirroredSnapshot, to: MirroredSnapshot.State, **fields: object
) -> None:
    moved = MirroredSnapshot.objects.filter(
        pk=mirrored.pk, state__in=sources_of(MIRRORED_SNAPSHOT_TRANSITIONS, to=to)
    ).update(state=to, **fields)
    if not moved:
        raise StateChanged
    mirrored.refresh_from_db()
