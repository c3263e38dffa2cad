"""The workflows of mirrors: create, transfer a snapshot, delete, move the home."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.catalog.queries import in_scope
from provisioner.catalog.steps.deleting import ensure_left
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, PERFORCE, STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workers import alive_workers, unserved
from provisioner.engine.workflow import LIGHT, LONG, StepSpec, Workflow, register
from provisioner.mirrors.actions import begin_transfer, move_home
from provisioner.mirrors.models import (
    MOVING_MIRRORS,
    Mirror,
    MirrorOperation,
    TransferParameters,
)
from provisioner.mirrors.queries import next_to_transfer
from provisioner.mirrors.states import (
    mark_available,
    mark_failed,
    mark_gone,
    mark_missing,
    set_mirror_state,
)
from provisioner.mirrors.steps import filling, homes


def _subject(operation: Operation) -> Mirror:
    mirror: Mirror = operation.subject.mirror
    return mirror


def _is_compared(operation: Operation) -> bool:
    """Whether files can be compared: some worker sees the site, and has digests."""
    mirror = _subject(operation)
    pk = TransferParameters.of(operation).mirrored
    has_sample = mirror.snapshots.filter(pk=pk).exclude(snapshot__sample=[]).exists()
    return has_sample and not unserved([mirror.site.host_queue], alive_workers())


CREATE = (
    StepSpec("peered", "Check the peering", filling.ensure_peered, STORAGE),
    StepSpec(
        "volume", "Create the volume", filling.ensure_volume, STORAGE, ("peered",)
    ),
    StepSpec(
        "relationship",
        "Create the SnapMirror relationship",
        filling.ensure_relationship,
        STORAGE,
        ("volume",),
    ),
)
TRANSFER = (
    *CREATE,
    StepSpec(
        "transfer",
        "Transfer the snapshot",
        filling.ensure_transferred,
        STORAGE,
        ("relationship",),
    ),
    StepSpec(
        "arrival",
        "Verify the snapshot at the site",
        filling.ensure_arrived,
        STORAGE,
        ("transfer",),
    ),
    StepSpec(
        "show",
        "Mount the copy for workers",
        filling.ensure_shown,
        STORAGE,
        ("arrival",),
        applies=_is_compared,
    ),
    StepSpec(
        "compare",
        "Compare files with what was published",
        filling.ensure_equal,
        HOST,
        ("show",),
        applies=_is_compared,
    ),
    StepSpec(
        "hide",
        "Unmount the copy",
        filling.ensure_hidden,
        STORAGE,
        ("compare",),
        applies=_is_compared,
    ),
)
DELETE = (
    StepSpec("clones", "Check for clones", filling.ensure_no_clones, STORAGE),
    StepSpec(
        "relationship",
        "Delete the SnapMirror relationship",
        filling.ensure_relationship_deleted,
        STORAGE,
        ("clones",),
    ),
    StepSpec(
        "delete",
        "Delete the volume",
        filling.ensure_volume_deleted,
        STORAGE,
        ("relationship",),
    ),
)


def _mounts_each(operation: Operation) -> bool:
    return bool(operation.site.mounts_each)


def _has_former_client(operation: Operation) -> bool:
    return bool(operation.subject.mirror.former_client)


PROMOTE = (
    StepSpec("copy", "Verify the newest snapshot there", homes.ensure_copy, STORAGE),
    StepSpec(
        "break",
        "Break the SnapMirror relationship",
        homes.ensure_writable,
        STORAGE,
        ("copy",),
        is_commit_point=True,
    ),
    StepSpec(
        "client",
        "Define the client at the site",
        homes.ensure_client,
        PERFORCE,
        ("break",),
        perforce=LONG,
    ),
    StepSpec(
        "unlink",
        "Delete the SnapMirror relationship",
        homes.ensure_unlinked,
        STORAGE,
        ("client",),
    ),
    StepSpec("export", "Export it", homes.ensure_exported, STORAGE, ("unlink",)),
    StepSpec("mount", "Mount it", homes.ensure_mounted, STORAGE, ("export",)),
    # Last: until here, clones find the volume by its name as a mirror.
    StepSpec(
        "rename",
        "Name it as the template's volume",
        homes.ensure_named_as_home,
        STORAGE,
        ("mount",),
    ),
)
_LEAVE = (
    StepSpec(
        "release",
        "Release the old SnapMirror relationship",
        homes.ensure_released,
        STORAGE,
    ),
    StepSpec(
        "client",
        "Delete the old client",
        homes.ensure_client_deleted,
        PERFORCE,
        ("release",),
        applies=_has_former_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "leave",
        "Unmount it on a host",
        ensure_left,
        HOST,
        ("client",),
        applies=_mounts_each,
    ),
    StepSpec(
        "unmount",
        "Unmount it",
        homes.ensure_unmounted,
        STORAGE,
        ("client", "leave", "release"),
    ),
)
REESTABLISH = (
    StepSpec("peered", "Check the peering", filling.ensure_peered, STORAGE),
    StepSpec(
        "common",
        "Check what a resync would discard",
        homes.ensure_common,
        STORAGE,
        ("peered",),
    ),
    StepSpec(
        "release",
        "Release the old SnapMirror relationship",
        homes.ensure_released,
        STORAGE,
        ("common",),
    ),
    *_LEAVE[1:],
    StepSpec(
        "relationship",
        "Create the SnapMirror relationship",
        homes.ensure_reversed,
        STORAGE,
        ("unmount",),
    ),
    StepSpec(
        "resync",
        "Resync",
        homes.ensure_resynced,
        STORAGE,
        ("relationship",),
        is_commit_point=True,
    ),
    StepSpec(
        "rename",
        "Name it as the mirror's volume",
        homes.ensure_named_as_mirror,
        STORAGE,
        ("resync",),
    ),
)
GIVE_UP = (
    *_LEAVE,
    StepSpec(
        "relationship",
        "Delete what is left of a way back",
        filling.ensure_relationship_deleted,
        STORAGE,
        ("unmount",),
    ),
)


def _is_created(operation: Operation) -> None:
    mirror = _subject(operation)
    set_mirror_state(mirror, Mirror.State.READY, message="Ready.")
    snapshot = next_to_transfer(mirror)
    if snapshot is not None:
        begin_transfer(by=operation.requested_by, mirror=mirror, snapshot=snapshot)


def _is_changed(operation: Operation) -> None:
    mirror = _subject(operation)
    message = f"{mirror.keep} snapshots are kept."
    set_mirror_state(mirror, Mirror.State.READY, message=message)


def _has_arrived(operation: Operation) -> None:
    mirror = _subject(operation)
    transferred = find_result(operation, filling.Transferred)
    arrived = find_result(operation, filling.Arrived)
    compared = find_result(operation, filling.Compared)
    assert transferred is not None
    assert arrived is not None
    mirrored = mirror.snapshots.select_related("snapshot").get(
        pk=TransferParameters.of(operation).mirrored
    )
    mark_missing(mirror, there=arrived.there)
    mark_available(
        mirrored,
        ontap_uuid=arrived.ontap_uuid,
        bytes=transferred.bytes,
        seconds=transferred.seconds,
        compared_files=compared.files if compared else 0,
    )
    message = (
        f"{mirrored.snapshot.name} is available at {mirror.site.name}. "
        f"{_comparison(compared)}"
    )
    set_mirror_state(mirror, Mirror.State.READY, message=message)


def _comparison(compared: filling.Compared | None) -> str:
    if compared is None or not compared.files:
        return "Only its version was compared: no worker there could read its files."
    return f"{compared.files} files were compared."


def _is_deleted(operation: Operation) -> None:
    mirror = _subject(operation)
    mark_gone(mirror)
    set_mirror_state(
        mirror,
        Mirror.State.DELETED,
        message="Deleted.",
        actor=operation.requested_by,
    )


def _is_promoted(operation: Operation) -> None:
    """Make the mirror its template's home."""
    move_home(_subject(operation), by=operation.requested_by)


def _is_back(operation: Operation) -> None:
    """Make the former home a mirror, which lacks what was built meanwhile."""
    mirror = _subject(operation)
    returned = find_result(operation, homes.Returned)
    assert returned is not None
    mark_missing(mirror, there=returned.there)
    message = f"{mirror.site.name} follows {mirror.template.site.name}."
    set_mirror_state(mirror, Mirror.State.READY, message=message)
    Mirror.objects.filter(pk=mirror.pk).update(is_former_home=False, former_client="")
    snapshot = next_to_transfer(mirror)
    if snapshot is not None:
        begin_transfer(by=operation.requested_by, mirror=mirror, snapshot=snapshot)


def _is_given_up(operation: Operation) -> None:
    """Keep the row of the former home until its volume is deleted."""
    mirror = _subject(operation)
    mark_gone(mirror)
    message = "Given up. Its volume stays until the mirror is deleted."
    set_mirror_state(
        mirror, Mirror.State.GIVEN_UP, message=message, actor=operation.requested_by
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_subject(operation), failure)


def _fail(mirror: Mirror, failure: Failure) -> None:
    if mirror.is_moving:
        mark_failed(mirror)
        set_mirror_state(
            mirror, _state_after(mirror), code=failure.code, message=failure.message
        )


def _state_after(mirror: Mirror) -> Mirror.State:
    """Return where a failure leads. A former home is never created again."""
    if not mirror.is_former_home:
        return Mirror.State.FAILED
    if mirror.state == Mirror.State.DELETING:
        return Mirror.State.GIVEN_UP
    return Mirror.State.FORMER


def _visible_to(user: User) -> QuerySet[Any, Any]:
    """Mirrors are visible to everybody who may see their template."""
    mirrors = Mirror.with_deleted.filter(in_scope(user, by="template"))
    return mirrors.order_by().values("subject")


subjects.register(
    SubjectKind(
        field="mirror",
        rows=lambda: Mirror.with_deleted.select_related(
            "template__site__perforce_server", "site__perforce_server"
        ),
        visible=_visible_to,
        moving=MOVING_MIRRORS,
        fail=_fail,
        crumbs="mirrors/_crumbs.html",
    )
)
for _kind, _steps, _on_success in (
    (MirrorOperation.CREATE, CREATE, _is_created),
    (MirrorOperation.CHANGE, CREATE, _is_changed),
    (MirrorOperation.TRANSFER, TRANSFER, _has_arrived),
    (MirrorOperation.DELETE, DELETE, _is_deleted),
    (MirrorOperation.PROMOTE, PROMOTE, _is_promoted),
    (MirrorOperation.REESTABLISH, REESTABLISH, _is_back),
    (MirrorOperation.GIVE_UP, GIVE_UP, _is_given_up),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_has_failed,
            run=filling.MirrorRun,
        ),
    )
