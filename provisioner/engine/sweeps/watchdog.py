"""Finish what a crash left half done, or mark it as lost: nothing waits forever.

jobs.py reassigns jobs of silent workers and steps without a job. This handles the rest:
operations that nobody continues, and rows in a moving state that no operation moves.
Each is checked again under its lock, so that no half-done change is seen.
"""

from __future__ import annotations

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from procrastinate.contrib.django import app

from provisioner.accounts import origin
from provisioner.audit_log.actions import record_event
from provisioner.engine import states, subjects, tasks, workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.states import IN_FLIGHT
from provisioner.engine.subjects import Failure, SubjectKind

log = structlog.get_logger(__name__)

LOST = Failure(
    code="operation_lost",
    message="The operation on it was lost, and nothing continues it. Retry, or "
    "retire it.",
)
SETTLED = (Step.State.DONE, Step.State.SKIPPED)


@app.periodic(cron="* * * * * */30")
@app.task(name="watchdog", queue="sweeps", queueing_lock="watchdog")
def watchdog(timestamp: int) -> None:
    """Repair operations and rows that no job will move."""
    with origin.coming_by("watchdog"):
        go_on_with_operations()
        end_steps_of_ended_operations()
        for kind in subjects.kinds():
            fail_lost(kind)


def go_on_with_operations() -> None:
    """End each running operation whose steps are settled; start the steps that can."""
    in_flight = Step.objects.filter(operation=OuterRef("pk"), state__in=IN_FLIGHT)
    for operation in Operation.objects.filter(
        ~Exists(in_flight), state=Operation.State.RUNNING
    ):
        with transaction.atomic():
            _go_on(operation.pk)


def _go_on(operation_id: int) -> None:
    operation = (
        Operation.objects.select_for_update(of=("self",))
        .select_related("requested_by", *subjects.paths(by=""))
        .get(pk=operation_id)
    )
    steps = list(operation.steps.all())
    is_over = operation.state != Operation.State.RUNNING
    if is_over or any(step.state in IN_FLIGHT for step in steps):
        return
    if not workflow.knows(operation, steps):
        return  # the watchdog of the release that has it goes on with it
    failed = next((step for step in steps if step.state == Step.State.FAILED), None)
    if failed is not None:
        tasks.end_badly(
            operation,
            code=failed.error_code or LOST.code,
            message=failed.error_message,
        )
        healed = f"It was ended: its step {failed.name} had failed."
    else:
        tasks.advance(operation)
        is_done = all(step.state in SETTLED for step in steps)
        healed = "It was ended." if is_done else "Its next steps were queued."
    log.warning("operation_healed", operation_id=operation.pk)
    record_event(
        operation.subject.row,
        kind="operation_healed",
        message=f"{operation.kind_title}: nothing continued it. {healed}",
        data={"operation": operation.pk},
    )


def end_steps_of_ended_operations() -> None:
    """Skip waiting steps of ended operations; a running step is ended by its job."""
    waiting = Step.objects.filter(state=Step.State.WAITING).exclude(
        operation__state=Operation.State.RUNNING
    )
    for operation in Operation.objects.filter(steps__in=waiting).distinct():
        with transaction.atomic():
            states.skip_waiting_steps(operation)
            log.warning("waiting_steps_skipped", operation_id=operation.pk)


def fail_lost(kind: SubjectKind) -> None:
    """Fail each row of a kind that is in a moving state, but that nothing moves."""
    lost = (
        kind.rows()
        .filter(state__in=kind.moving)
        .exclude(subject__operations__state=Operation.State.RUNNING)
    )
    for pk in lost.values_list("pk", flat=True):
        with transaction.atomic():
            row = kind.rows().select_for_update(of=("self",)).get(pk=pk)
            running = row.operations.filter(state=Operation.State.RUNNING)
            if row.state in kind.moving and not running.exists():
                log.warning("operation_lost", kind=kind.field, pk=pk)
                kind.fail(row, LOST)
