"""The workflows of mirrors: create, transfer a snapshot, delete."""

from __future__ import annotations

from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.catalog.queries import in_scope
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workers import alive_workers, unserved
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.mirrors import steps
from provisioner.mirrors.actions import begin_transfer
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
    set_mirror_state,
)


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
    StepSpec("peered", "Check the peering", steps.ensure_peered, STORAGE),
    StepSpec("volume", "Create the volume", steps.ensure_volume, STORAGE, ("peered",)),
    StepSpec(
        "relationship",
        "Create the SnapMirror relationship",
        steps.ensure_relationship,
        STORAGE,
        ("volume",),
    ),
)
TRANSFER = (
    *CREATE,
    StepSpec(
        "transfer",
        "Transfer the snapshot",
        steps.ensure_transferred,
        STORAGE,
        ("relationship",),
    ),
    StepSpec(
        "arrival",
        "Verify the snapshot at the site",
        steps.ensure_arrived,
        STORAGE,
        ("transfer",),
    ),
    StepSpec(
        "show",
        "Mount the copy for workers",
        steps.ensure_shown,
        STORAGE,
        ("arrival",),
        applies=_is_compared,
    ),
    StepSpec(
        "compare",
        "Compare files with what was published",
        steps.ensure_equal,
        HOST,
        ("show",),
        applies=_is_compared,
    ),
    StepSpec(
        "hide",
        "Unmount the copy",
        steps.ensure_hidden,
        STORAGE,
        ("compare",),
        applies=_is_compared,
    ),
)
DELETE = (
    StepSpec("clones", "Check for clones", steps.ensure_no_clones, STORAGE),
    StepSpec(
        "relationship",
        "Delete the SnapMirror relationship",
        steps.ensure_relationship_deleted,
        STORAGE,
        ("clones",),
    ),
    StepSpec(
        "delete",
        "Delete the volume",
        steps.ensure_volume_deleted,
        STORAGE,
        ("relationship",),
    ),
    StepSpec(
        "gone",
        "Mark its snapshots as gone",
        steps.ensure_marked_gone,
        STORAGE,
        ("delete",),
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
    transferred = find_result(operation, steps.Transferred)
    arrived = find_result(operation, steps.Arrived)
    compared = find_result(operation, steps.Compared)
    assert transferred is not None
    assert arrived is not None
    mirrored = mirror.snapshots.select_related("snapshot").get(
        pk=TransferParameters.of(operation).mirrored
    )
    mark_gone(mirror, besides=arrived.there)
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


def _comparison(compared: steps.Compared | None) -> str:
    if compared is None or not compared.files:
        return "Only its version was compared: no worker there could read its files."
    return f"{compared.files} files were compared."


def _is_deleted(operation: Operation) -> None:
    mirror = _subject(operation)
    set_mirror_state(
        mirror,
        Mirror.State.DELETED,
        message="Deleted.",
        actor=operation.requested_by,
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_subject(operation), failure)


def _fail(mirror: Mirror, failure: Failure) -> None:
    if mirror.is_moving:
        mark_failed(mirror)
        set_mirror_state(
            mirror, Mirror.State.FAILED, code=failure.code, message=failure.message
        )


def _visible_to(user: User) -> Q:
    """Mirrors are visible to everybody who may see their template."""
    return Q(subject__mirror__isnull=False) & in_scope(
        user, by="subject__mirror__template"
    )


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
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_has_failed,
            run=steps.MirrorRun,
        ),
    )
