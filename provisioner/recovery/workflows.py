"""The workflow that restores a workspace from a copy."""

from __future__ import annotations

from dataclasses import replace

from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST
from provisioner.engine.workflow import LIGHT, StepSpec, Workflow, register
from provisioner.recovery import steps
from provisioner.recovery.models import RecoveryOperation
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.workflows import PROVISION, has_failed, is_ready


def _has_client(operation: Operation) -> bool:
    return bool(operation.subject.workspace.client_name)


_ANOTHER_WAY = {
    "clone": ("Clone the copy", steps.ensure_clone),
    "flush": ("Flush to what was synced", steps.ensure_flushed),
}


def _of_copy(spec: StepSpec) -> StepSpec:
    if spec.name not in _ANOTHER_WAY:
        return spec
    title, ensure = _ANOTHER_WAY[spec.name]
    return replace(spec, title=title, ensure=ensure)


RECOVER = (
    *(_of_copy(spec) for spec in PROVISION if spec.name != "reconcile"),
    StepSpec(
        "opened",
        "Open the files that were opened",
        steps.ensure_opened,
        HOST,
        ("flush", "p4config"),
        applies=_has_client,
        perforce=LIGHT,
    ),
)

register(
    RecoveryOperation.RECOVER,
    Workflow(
        steps=RECOVER, on_success=is_ready, on_failure=has_failed, run=WorkspaceRun
    ),
)
