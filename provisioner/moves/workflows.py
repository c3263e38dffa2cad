"""The workflows of moves: move a template's volume, pause that, and stop it."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Operation
from provisioner.engine.queues import STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.steps import ensure_quiet
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.moves import steps
from provisioner.moves.models import MoveOperation

MOVE = (
    StepSpec("room", "Check the room for it", steps.ensure_room, STORAGE),
    StepSpec("move", "Move the volume", steps.ensure_moved, STORAGE, ("room",)),
    StepSpec(
        "record",
        "Verify where it is",
        steps.ensure_recorded,
        STORAGE,
        ("move",),
    ),
)
PAUSE_MOVE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec("pause", "Pause the move", steps.ensure_paused, STORAGE, ("quiet",)),
)
STOP_MOVE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec("stop", "Stop the move", steps.ensure_stopped, STORAGE, ("quiet",)),
)


def _template(operation: Operation) -> Template:
    template: Template = operation.subject.template
    return template


def _has_moved(operation: Operation) -> None:
    record_event(
        _template(operation),
        kind="template_moved",
        message=f"Moved to the aggregate {operation.move.destination}.",
        actor=operation.requested_by,
    )


def _has_paused(operation: Operation) -> None:
    paused = find_result(operation, steps.Paused)
    assert paused is not None
    message = "Its move was paused."
    if not paused.is_paused:
        message = (
            "Its move had not begun, or had ended before it was paused. It is in the "
            f"aggregate {paused.aggregate}."
        )
    record_event(
        _template(operation),
        kind="template_move_paused",
        message=message,
        actor=operation.requested_by,
    )


def _has_stopped(operation: Operation) -> None:
    stopped = find_result(operation, steps.Stopped)
    assert stopped is not None
    record_event(
        _template(operation),
        kind="template_move_stopped",
        message=f"Its move was stopped. It is in the aggregate {stopped.aggregate}.",
        actor=operation.requested_by,
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    """Record why; the template stays as it was."""
    record_event(
        _template(operation),
        kind=f"{operation.kind}_failed",
        message=failure.message,
        actor=operation.requested_by,
    )


for _kind, _steps, _on_success in (
    (MoveOperation.MOVE, MOVE, _has_moved),
    (MoveOperation.PAUSE, PAUSE_MOVE, _has_paused),
    (MoveOperation.STOP, STOP_MOVE, _has_stopped),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_has_failed,
            run=TemplateRun,
        ),
    )
