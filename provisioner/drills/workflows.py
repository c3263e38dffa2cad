"""A drill: a sandbox of replicated volumes, a measurement, and its end."""

from __future__ import annotations

from provisioner.drills import steps
from provisioner.drills.actions import drill_failed, drill_passed
from provisioner.engine.models import Operation
from provisioner.engine.queues import OWN, STORAGE
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.sandboxes import purposes, workflows
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.purposes import Recipe
from provisioner.sandboxes.steps.run import SandboxRun

DRILL = (
    StepSpec(
        "server",
        "Look up what is recorded of the server",
        steps.ensure_known,
        STORAGE,
    ),
    *(each for each in workflows.CREATE if each.name != "server"),
    StepSpec(
        "measure",
        "Ask it for its last change",
        steps.ensure_measured,
        OWN,
        ("answer",),
    ),
)


def _has_passed(operation: Operation) -> None:
    drill_passed(operation.subject.sandbox)


def _has_failed(operation: Operation, failure: Failure) -> None:
    workflows.has_failed(operation, failure)
    drill_failed(operation.subject.sandbox, message=failure.message)


register(
    SandboxOperation.DRILL,
    Workflow(
        steps=DRILL, on_success=_has_passed, on_failure=_has_failed, run=SandboxRun
    ),
)
purposes.register(Sandbox.Purpose.DRILL, Recipe(operation=SandboxOperation.DRILL))
