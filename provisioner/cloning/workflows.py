"""The workflow that clones a workspace."""

from __future__ import annotations

from dataclasses import replace

from provisioner.cloning import steps
from provisioner.cloning.models import CloningOperation
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, PERFORCE, STORAGE
from provisioner.engine.workflow import LIGHT, StepSpec, Workflow, register
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.workflows import PROVISION, has_failed, is_ready


def _has_client(operation: Operation) -> bool:
    return bool(operation.subject.workspace.client_name)


_ANOTHER_WAY = {
    "clone": ("Clone its snapshot", steps.ensure_clone),
    "flush": ("Flush to what was synced", steps.ensure_flushed),
}


def _of_clone(spec: StepSpec) -> StepSpec:
    if spec.name not in _ANOTHER_WAY:
        return spec
    title, ensure = _ANOTHER_WAY[spec.name]
    return replace(spec, title=title, ensure=ensure, after=(*spec.after, "record"))


CLONE = (
    PROVISION[0],
    StepSpec(
        "snapshot",
        "Take a snapshot of the original",
        steps.ensure_snapshot,
        STORAGE,
        ("access",),
    ),
    StepSpec(
        "record",
        "Record what is opened",
        steps.ensure_recorded,
        PERFORCE,
        ("snapshot",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    *(_of_clone(spec) for spec in PROVISION[1:] if spec.name != "reconcile"),
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
    CloningOperation.CLONE,
    Workflow(steps=CLONE, on_success=is_ready, on_failure=has_failed, run=WorkspaceRun),
)
