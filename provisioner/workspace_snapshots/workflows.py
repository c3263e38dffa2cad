"""The workflows of snapshots of workspaces: compare, take back, restore."""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, PERFORCE, STORAGE
from provisioner.engine.subjects import Failure
from provisioner.engine.workflow import (
    LIGHT,
    SHORT,
    StepSpec,
    Workflow,
    register,
)
from provisioner.workspace_snapshots import steps
from provisioner.workspace_snapshots.models import SnapshotParameters
from provisioner.workspaces.models import WorkspaceOperation
from provisioner.workspaces.steps.provision import ensure_p4config
from provisioner.workspaces.steps.run import WorkspaceRun

COMPARE = (StepSpec("compare", "Compare the files", steps.ensure_compared, HOST),)
TAKE_BACK = (StepSpec("copy", "Copy the files", steps.ensure_taken_back, HOST),)


def _has_client(operation: Operation) -> bool:
    return bool(operation.subject.workspace.client_name)


RESTORE = (
    StepSpec(
        "check",
        "Check that nothing is opened",
        steps.ensure_nothing_opened,
        PERFORCE,
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "keep",
        "Take a snapshot of what is there now",
        steps.ensure_kept,
        STORAGE,
        ("check",),
    ),
    StepSpec(
        "record",
        "Record what is synced now",
        steps.ensure_recorded,
        PERFORCE,
        ("keep",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "files",
        "Restore the files",
        steps.ensure_files,
        HOST,
        ("record",),
    ),
    StepSpec(
        "p4config",
        "Write .p4config",
        ensure_p4config,
        HOST,
        ("files",),
        applies=_has_client,
    ),
    StepSpec(
        "flush",
        "Flush to what was synced",
        steps.ensure_flushed,
        PERFORCE,
        ("files",),
        applies=_has_client,
        perforce=SHORT,
    ),
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


def _is_compared(operation: Operation) -> None:
    """Nothing was changed: the operation has the list."""


def _is_taken_back(operation: Operation) -> None:
    operation.refresh_from_db(fields=["findings"])  # the step wrote them
    asked, found = SnapshotParameters.of(operation), operation.findings or {}
    what = asked.path or f"{len(asked.paths):,} that had failed"
    failed = _say_failed(operation, done="Taken back")
    record_event(
        operation.subject.workspace,
        kind="taken_back",
        message=f"Took back {what} from {asked.snapshot}. Files: "
        f"{found.get('files', 0):,}, newer ones kept: {found.get('kept_count', 0):,}, "
        f"not taken back: {failed:,}.",
        actor=operation.requested_by,
    )


def _is_restored(operation: Operation) -> None:
    operation.refresh_from_db(fields=["findings"])  # the steps wrote them
    snapshot = SnapshotParameters.of(operation).snapshot
    failed = _say_failed(operation, done="Restored")
    record_event(
        operation.subject.workspace,
        kind="snapshot_restored_in_part" if failed else "snapshot_restored",
        message=f"Restored it to {snapshot}{_except(failed)}. What it was "
        f"before is in {steps.kept_name(operation)}.",
        actor=operation.requested_by,
        data={"failed": failed} if failed else None,
    )


def _say_failed(operation: Operation, *, done: str) -> int:
    """Say on the operation how many files could not be written, and return that."""
    failed: int = (operation.findings or {}).get("failed_count", 0)
    if failed:
        said = f"{done}{_except(failed)}. The page of the snapshot can retry these."
        Operation.objects.filter(pk=operation.pk).update(status_message=said)
    return failed


def _except(failed: int) -> str:
    if not failed:
        return ""
    return f", except {failed:,} {'file' if failed == 1 else 'files'}"


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
    (WorkspaceOperation.RESTORE_SNAPSHOT, RESTORE, _is_restored),
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
