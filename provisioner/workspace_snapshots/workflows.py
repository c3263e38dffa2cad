"""The workflows of snapshots of workspaces: compare, take back."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.workspace_snapshots import steps
from provisioner.workspace_snapshots.models import SnapshotParameters
from provisioner.workspaces.models import WorkspaceOperation
from provisioner.workspaces.steps.run import WorkspaceRun

COMPARE = (StepSpec("compare", "Compare the files", steps.ensure_compared, HOST),)
TAKE_BACK = (StepSpec("copy", "Copy the files", steps.ensure_taken_back, HOST),)


def _is_compared(operation: Operation) -> None:
    """Nothing was changed: the operation has the list."""


def _is_taken_back(operation: Operation) -> None:
    operation.refresh_from_db(fields=["findings"])  # the step wrote them
    asked, found = SnapshotParameters.of(operation), operation.findings or {}
    record_event(
        operation.subject.workspace,
        kind="taken_back",
        message=f"Took back {asked.path} from {asked.snapshot}. Files: "
        f"{found.get('files', 0):,}, newer ones kept: {found.get('kept_count', 0):,}.",
        actor=operation.requested_by,
    )


def _has_failed(operation: Operation, failure: Failure) -> None:
    """Record why; the workspace stays ready."""
    record_event(
        operation.subject.workspace,
        kind=f"{operation.kind}_failed",
        message=failure.message,
        actor=operation.requested_by,
    )


for _kind, _steps, _on_success in (
    (WorkspaceOperation.COMPARE, COMPARE, _is_compared),
    (WorkspaceOperation.TAKE_BACK, TAKE_BACK, _is_taken_back),
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
