"""Nothing waits for ever: what a crash left half done is finished or said to be lost.

Jobs of silent workers and steps without a job are given to others in tasks.py. This is
about what is left then: operations that nobody goes on with, and rows that say they
are moving while nothing moves them. Each is looked at again under its lock, where the
two halves of a change are seen together or not at all.
"""

from __future__ import annotations

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from procrastinate.contrib.django import app

from provisioner.accounts import origin
from provisioner.catalog.models import Template
from provisioner.engine import states, tasks
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import MOVING, Workspace

log = structlog.get_logger(__name__)

LOST = "operation_lost"
LOST_MESSAGE = (
    "The work on it was lost and nobody goes on with it. Try again, or retire it."
)
SETTLED = (Step.State.DONE, Step.State.SKIPPED)


@app.periodic(cron="* * * * * */30")
@app.task(name="watchdog", queue="sweeps", queueing_lock="watchdog")
def watchdog(timestamp: int) -> None:
    """Heal what no job will heal."""
    with origin.coming_by("watchdog"):
        go_on_with_operations()
        end_steps_of_ended_operations()
        fail_what_nobody_moves()


def go_on_with_operations() -> None:
    """End each running operation whose steps are settled; start what may start."""
    in_flight = Step.objects.filter(operation=OuterRef("pk"), state__in=tasks.IN_FLIGHT)
    for operation in Operation.objects.filter(
        ~Exists(in_flight), state=Operation.State.RUNNING
    ):
        with transaction.atomic():
            _go_on(operation.pk)


def _go_on(operation_id: int) -> None:
    operation = (
        Operation.objects.select_for_update(of=("self",))
        .select_related(
            "workspace__site__perforce_server",
            "template__site__perforce_server",
            "requested_by",
        )
        .get(pk=operation_id)
    )
    steps = list(operation.steps.all())
    is_over = operation.state != Operation.State.RUNNING
    if is_over or any(step.state in tasks.IN_FLIGHT for step in steps):
        return
    failed = next((step for step in steps if step.state == Step.State.FAILED), None)
    if failed is not None:
        _end_badly(operation, failed)
        healed = f"It was ended: its step {failed.name} had failed."
    else:
        tasks.advance(operation)
        is_done = all(step.state in SETTLED for step in steps)
        healed = "It was ended." if is_done else "Its next steps were queued."
    log.warning("operation_healed", operation_id=operation.pk)
    subject = operation.workspace or operation.template
    assert subject is not None
    states.record_event(
        subject,
        kind="operation_healed",
        message=f"{operation.get_kind_display()}: nobody went on with it. {healed}",
        data={"operation": operation.pk},
    )


def _end_badly(operation: Operation, failed: Step) -> None:
    states.end_operation(
        operation,
        Operation.State.FAILED,
        code=failed.error_code,
        message=failed.error_message,
    )
    states.skip_waiting_steps(operation)
    if operation.workspace is not None and operation.workspace.is_moving:
        states.set_workspace_state(
            operation.workspace,
            Workspace.State.FAILED,
            code=failed.error_code or LOST,
            message=failed.error_message,
        )
    if (
        operation.template is not None
        and operation.template.state == Template.State.BUILDING
    ):
        states.set_template_state(
            operation.template,
            Template.State.FAILED,
            code=failed.error_code or LOST,
            message=failed.error_message,
        )


def end_steps_of_ended_operations() -> None:
    """Skip steps that would wait for ever; one at work is its job's to end."""
    waiting = Step.objects.filter(state=Step.State.WAITING).exclude(
        operation__state=Operation.State.RUNNING
    )
    for operation in Operation.objects.filter(steps__in=waiting).distinct():
        with transaction.atomic():
            states.skip_waiting_steps(operation)
            log.warning("waiting_steps_skipped", operation_id=operation.pk)


def fail_what_nobody_moves() -> None:
    """Say of each moving row without a running operation that its work was lost."""
    for workspace in Workspace.objects.filter(state__in=MOVING).exclude(
        operations__state=Operation.State.RUNNING
    ):
        with transaction.atomic():
            locked = Workspace.objects.select_for_update(of=("self",)).get(
                pk=workspace.pk
            )
            if locked.is_moving and not _is_worked_on(locked):
                log.warning("workspace_lost", workspace_id=locked.pk)
                states.set_workspace_state(
                    locked, Workspace.State.FAILED, code=LOST, message=LOST_MESSAGE
                )
    for template in Template.objects.filter(state=Template.State.BUILDING).exclude(
        operations__state=Operation.State.RUNNING
    ):
        with transaction.atomic():
            row = Template.objects.select_for_update(of=("self",)).get(pk=template.pk)
            is_building = row.state == Template.State.BUILDING
            if is_building and not _is_worked_on(row):
                log.warning("template_lost", template_id=row.pk)
                states.set_template_state(
                    row, Template.State.FAILED, code=LOST, message=LOST_MESSAGE
                )


def _is_worked_on(subject: Workspace | Template) -> bool:
    return subject.operations.filter(state=Operation.State.RUNNING).exists()
