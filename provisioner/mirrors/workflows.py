"""Creating a mirror and carrying a snapshot to it, as lists of steps."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.catalog.queries import default_snapshot, in_scope
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.subjects import SubjectKind
from provisioner.engine.watchdog import LOST
from provisioner.engine.workflow import Failure, StepSpec, Workflow, register
from provisioner.mirrors import steps
from provisioner.mirrors.actions import transfer_begin
from provisioner.mirrors.models import Mirror, MirrorOperation, TransferParameters
from provisioner.mirrors.states import fail_copies, finish_copy, set_mirror_state

CREATE = (
    StepSpec("peered", "Check the peering", steps.ensure_peered, STORAGE),
    StepSpec("volume", "Create the volume", steps.ensure_volume, STORAGE, ("peered",)),
    StepSpec(
        "relationship",
        "Relate it to the template's",
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
        "copy", "Check that it arrived", steps.ensure_copy_seen, STORAGE, ("transfer",)
    ),
)


def _is_created(operation: Operation) -> None:
    mirror = _subject(operation)
    set_mirror_state(mirror, Mirror.State.READY, message="Ready.")
    snapshot = default_snapshot(mirror.template)
    if snapshot is not None:
        transfer_begin(by=operation.requested_by, mirror=mirror, snapshot=snapshot)


def _has_arrived(operation: Operation) -> None:
    mirror = _subject(operation)
    transferred = find_result(operation, steps.Transferred)
    seen = find_result(operation, steps.CopySeen)
    assert transferred is not None
    assert seen is not None
    copy = mirror.copies.select_related("snapshot").get(
        pk=TransferParameters.of(operation).copy
    )
    finish_copy(
        copy,
        ontap_uuid=seen.ontap_uuid,
        bytes=transferred.bytes,
        seconds=transferred.seconds,
    )
    set_mirror_state(
        mirror, Mirror.State.READY, message=f"{copy.snapshot.name} is available."
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_subject(operation), failure)


def _fail(mirror: Mirror, failure: Failure) -> None:
    if mirror.is_moving:
        fail_copies(mirror)
        set_mirror_state(
            mirror, Mirror.State.FAILED, code=failure.code, message=failure.message
        )


def _subject(operation: Operation) -> Mirror:
    mirror: Mirror = operation.subject.mirror
    return mirror


def _fail_lost() -> None:
    """Say of each mirror at work that no operation moves that its work was lost."""
    moving = (Mirror.State.CREATING, Mirror.State.TRANSFERRING)
    for mirror in Mirror.objects.filter(state__in=moving).exclude(
        subject__operations__state=Operation.State.RUNNING
    ):
        with transaction.atomic():
            row = Mirror.objects.select_for_update(of=("self",)).get(pk=mirror.pk)
            if not row.operations.filter(state=Operation.State.RUNNING).exists():
                _fail(row, LOST)


def _visible_to(user: User) -> Q:
    """Mirrors are for everybody to follow who may see their template."""
    return Q(subject__mirror__isnull=False) & in_scope(
        user, by="subject__mirror__template"
    )


subjects.register(
    SubjectKind(
        field="mirror",
        rows=lambda: Mirror.objects.select_related(
            "template__site", "site__perforce_server"
        ),
        visible=_visible_to,
        fail_lost=_fail_lost,
        crumbs="mirrors/_crumbs.html",
    )
)
for _kind, _steps, _on_success in (
    (MirrorOperation.CREATE, CREATE, _is_created),
    (MirrorOperation.TRANSFER, TRANSFER, _has_arrived),
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
