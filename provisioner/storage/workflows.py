"""The workflows of splits: split a workspace's clone, and stop that."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.engine.queues import STORAGE
from provisioner.engine.results import find_result
from provisioner.engine.steps import ensure_quiet
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.storage import steps
from provisioner.storage.models import Split
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import mark_independent
from provisioner.workspaces.steps.run import WorkspaceRun

SPLIT = (
    StepSpec("room", "Check the room for it", steps.ensure_room, STORAGE),
    StepSpec("split", "Split the clone", steps.ensure_split, STORAGE, ("room",)),
    StepSpec(
        "proof",
        "Verify that it is independent",
        steps.ensure_independent,
        STORAGE,
        ("split",),
    ),
)
STOP_SPLIT = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec("stop", "Stop the split", steps.ensure_stopped, STORAGE, ("quiet",)),
)


def _workspace(operation: Operation) -> Workspace:
    workspace: Workspace = operation.subject.workspace
    return workspace


def _is_independent(operation: Operation) -> None:
    copied = find_result(operation, steps.Copied)
    plan = find_result(operation, steps.SplitPlan)
    assert copied is not None
    assert plan is not None
    Split.objects.filter(operation=operation).update(
        estimate_bytes=plan.estimate_bytes, seconds=copied.seconds
    )
    _mark_independent(operation)


def _mark_independent(operation: Operation) -> None:
    workspace = _workspace(operation)
    mark_independent(
        workspace,
        message=f"Independent of the snapshot {workspace.snapshot.name}.",
        actor=operation.requested_by,
    )


def _has_stopped(operation: Operation) -> None:
    stopped = find_result(operation, steps.Stopped)
    assert stopped is not None
    if not stopped.is_clone:
        _mark_independent(operation)


def _has_failed(operation: Operation, failure: Failure) -> None:
    """Record why; the workspace stays ready, and a clone."""
    record_event(
        _workspace(operation),
        kind=f"{operation.kind}_failed",
        message=failure.message,
        actor=operation.requested_by,
    )


for _kind, _steps, _on_success in (
    (WorkspaceOperation.SPLIT, SPLIT, _is_independent),
    (WorkspaceOperation.STOP_SPLIT, STOP_SPLIT, _has_stopped),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_has_failed,
            run=WorkspaceRun,
        ),
    )
