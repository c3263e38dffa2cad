"""The workflow of a step of a bisection."""

from __future__ import annotations

from dataclasses import replace

from provisioner.bisect import steps
from provisioner.bisect.models import BisectionOperation
from provisioner.engine.models import Operation
from provisioner.engine.queues import BISECTIONS, HOST
from provisioner.engine.workflow import SHORT, StepSpec, Workflow, register
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.workflows import PROVISION, has_failed, is_ready


def _has_command(operation: Operation) -> bool:
    return bool(operation.subject.workspace.bisection_step.bisection.command)


# Build only: no client but the one that maps the files, and nothing is flushed.
BISECTION_STEP = (
    *(
        replace(spec, ensure=steps.ensure_access) if spec.name == "access" else spec
        for spec in PROVISION
        if spec.name in ("access", "clone", "export", "mount", "owner")
    ),
    StepSpec(
        "files",
        "Update it to the change",
        steps.ensure_at_change,
        HOST,
        ("owner",),
        perforce=SHORT,
    ),
    StepSpec(
        "run",
        "Run the command",
        steps.ensure_run,
        BISECTIONS,
        ("files",),
        applies=_has_command,
    ),
)


register(
    BisectionOperation.STEP,
    Workflow(
        steps=BISECTION_STEP,
        on_success=is_ready,
        on_failure=has_failed,
        run=WorkspaceRun,
    ),
)
