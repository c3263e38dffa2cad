"""The workflows of a workspace: their steps, and their effects on the workspace."""

from __future__ import annotations

import datetime as dt

from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import HOST, PERFORCE, STORAGE
from provisioner.engine.starting import start_operation
from provisioner.engine.steps import ensure_quiet
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import (
    LIGHT,
    SHORT,
    StepSpec,
    Workflow,
    register,
)
from provisioner.lib import clocks
from provisioner.workspaces.events import workspace_restored
from provisioner.workspaces.models import (
    MOVING,
    RetireParameters,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)
from provisioner.workspaces.queries import (
    subjects_of_workspaces_visible_to,
    trash_seconds_of,
    was_purged,
)
from provisioner.workspaces.states import set_workspace_state
from provisioner.workspaces.steps import checking, provision, purge, restore, retire
from provisioner.workspaces.steps.access import ensure_access
from provisioner.workspaces.steps.run import WorkspaceRun


def _has_client(operation: Operation) -> bool:
    return bool(operation.subject.workspace.client_name)


def _wants_reconcile(operation: Operation) -> bool:
    return _has_client(operation) and operation.subject.workspace.wants_reconcile


def _had_client(operation: Operation) -> bool:
    """Return whether there is a client; steps have one while their files are synced."""
    return _has_client(operation) or hasattr(
        operation.subject.workspace, "bisection_step"
    )


PROVISION = (
    StepSpec(
        "access",
        "Check read access",
        ensure_access,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec(
        "clone", "Clone the snapshot", provision.ensure_clone, STORAGE, ("access",)
    ),
    StepSpec("export", "Export it", provision.ensure_exported, STORAGE, ("clone",)),
    StepSpec("mount", "Mount it", provision.ensure_mounted, STORAGE, ("export",)),
    StepSpec("owner", "Make it yours", provision.ensure_owner, HOST, ("mount",)),
    StepSpec(
        "client",
        "Define the client",
        provision.ensure_client,
        PERFORCE,
        ("access",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "flush",
        "Flush to the change of the snapshot",
        provision.ensure_flushed,
        PERFORCE,
        ("client",),
        applies=_has_client,
        perforce=SHORT,
    ),
    StepSpec(
        "p4config",
        "Write .p4config",
        provision.ensure_p4config,
        HOST,
        ("owner", "client"),
        applies=_has_client,
    ),
    StepSpec(
        "reconcile",
        "Compare files with the depot",
        provision.ensure_reconciled,
        HOST,
        ("p4config", "flush"),
        applies=_wants_reconcile,
        perforce=SHORT,
    ),
)


def _mounts_each(operation: Operation) -> bool:
    return bool(operation.site.mounts_each)


def _holds_work(operation: Operation) -> bool:
    return operation.subject.workspace.holds_work


def _stops_at_unsubmitted_work(operation: Operation) -> bool:
    asked = RetireParameters.of(operation)
    return _holds_work(operation) and asked.unsubmitted == Unsubmitted.REFUSE


RETIRE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "unsubmitted",
        "Check for unsubmitted work",
        retire.ensure_nothing_unsubmitted,
        HOST,
        ("quiet",),
        applies=_stops_at_unsubmitted_work,
        perforce=SHORT,
    ),
    StepSpec(
        "freeze",
        "Freeze it",
        retire.ensure_frozen,
        STORAGE,
        ("unsubmitted",),
        is_commit_point=True,
    ),
    StepSpec(
        "work",
        "Rescue or discard unsubmitted work",
        retire.ensure_work_settled,
        HOST,
        ("freeze",),
        applies=_holds_work,
        perforce=SHORT,
    ),
    StepSpec(
        "client",
        "Delete the client",
        retire.ensure_client_deleted,
        HOST,
        ("work",),
        applies=_had_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "leave",
        "Unmount it on a host",
        retire.ensure_left,
        HOST,
        ("client",),
        applies=_mounts_each,
    ),
    StepSpec(
        "unmount", "Unmount it", retire.ensure_unmounted, STORAGE, ("client", "leave")
    ),
    StepSpec(
        "gone", "Check that it is gone", retire.ensure_path_gone, HOST, ("unmount",)
    ),
)


RESTORE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "clone", "Find the clone", restore.ensure_clone_there, STORAGE, ("quiet",)
    ),
    StepSpec("export", "Export it", provision.ensure_exported, STORAGE, ("clone",)),
    StepSpec("mount", "Mount it", provision.ensure_mounted, STORAGE, ("export",)),
    StepSpec("visible", "See it", restore.ensure_visible, HOST, ("mount",)),
    StepSpec(
        "client",
        "Define the client",
        restore.ensure_client,
        PERFORCE,
        ("clone",),
        applies=_has_client,
        perforce=LIGHT,
    ),
    StepSpec(
        "flush",
        "Flush to its have list",
        restore.ensure_flushed,
        HOST,
        ("client",),
        applies=_has_client,
        perforce=SHORT,
    ),
    StepSpec(
        "opened",
        "Open the files that were opened",
        restore.ensure_opened,
        HOST,
        ("visible", "flush"),
        applies=_has_client,
        perforce=LIGHT,
    ),
)


CHECK = (
    StepSpec(
        "check",
        "Check for unsubmitted work",
        checking.ensure_checked,
        HOST,
        perforce=SHORT,
    ),
)


def _removes_contents(operation: Operation) -> bool:
    return bool(operation.site.remove_contents)


PURGE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec(
        "mount",
        "Mount it out of sight",
        purge.ensure_reachable,
        STORAGE,
        ("quiet",),
        applies=_removes_contents,
    ),
    StepSpec(
        "contents",
        "Remove the contents",
        purge.ensure_contents_removed,
        HOST,
        ("mount",),
        applies=_removes_contents,
        is_commit_point=True,
    ),
    StepSpec(
        "unmount", "Unmount it", purge.ensure_unmounted, STORAGE, ("quiet", "contents")
    ),
    StepSpec(
        "delete",
        "Delete the clone",
        purge.ensure_clone_deleted,
        STORAGE,
        ("unmount",),
        is_commit_point=True,
    ),
    StepSpec(
        "proof",
        "Verify that nothing is left",
        purge.ensure_nothing_left,
        HOST,
        ("delete",),
    ),
)


def is_ready(operation: Operation) -> None:
    """Set the workspace's state to ready."""
    set_workspace_state(_subject(operation), Workspace.State.READY)


def _is_back(operation: Operation) -> None:
    workspace = _subject(operation)
    set_workspace_state(workspace, Workspace.State.READY)
    workspace.refresh_from_db(fields=["expires_at"])
    workspace_restored.send(Workspace, workspace=workspace)


def _is_gone(operation: Operation) -> None:
    set_workspace_state(_subject(operation), Workspace.State.RETIRED)


def _put_into_trash(operation: Operation) -> None:
    """Move it to the trash, or purge it at once if nobody could want it back.

    Without a time in the trash it is due now: the sweep checks twice, then purges it.
    """
    workspace = _subject(operation)
    goes_at_once = (
        workspace.ready_at is None
        or RetireParameters.of(operation).purge
        or was_purged(workspace)
    )
    seconds = 0 if goes_at_once else trash_seconds_of(workspace)
    set_workspace_state(
        workspace,
        Workspace.State.TRASHED,
        purge_at=clocks.database_now() + dt.timedelta(seconds=seconds),
    )
    if goes_at_once:
        set_workspace_state(workspace, Workspace.State.PURGING)
        start_operation(
            WorkspaceOperation.PURGE, by=operation.requested_by, about=workspace
        )


def _nothing_moved(operation: Operation) -> None:
    """A check never changes the workspace."""


def _nothing_failed(operation: Operation, failure: Failure) -> None:
    """A check never changes the workspace."""


def has_failed(operation: Operation, failure: Failure) -> None:
    """Record on the workspace why its operation failed."""
    _fail(_subject(operation), failure)


def _not_retired(operation: Operation, failure: Failure) -> None:
    """Keep the workspace ready if its retirement was refused or changed nothing."""
    workspace = _subject(operation)
    has_changed = operation.steps.committed().exists()
    if workspace.was_ready and (failure.is_refused or not has_changed):
        set_workspace_state(
            workspace,
            Workspace.State.READY,
            code=failure.code,
            message=failure.message,
        )
    else:
        _fail(workspace, failure)


def _fail(workspace: Workspace, failure: Failure) -> None:
    if workspace.is_moving:
        set_workspace_state(
            workspace,
            Workspace.State.FAILED,
            code=failure.code,
            message=failure.message,
        )


def _subject(operation: Operation) -> Workspace:
    workspace: Workspace = operation.subject.workspace
    return workspace


subjects.register(
    SubjectKind(
        field="workspace",
        rows=lambda: Workspace.objects.select_related(
            "snapshot", "template", "site__perforce_server"
        ),
        visible=subjects_of_workspaces_visible_to,
        moving=MOVING,
        fail=_fail,
        crumbs="workspaces/_crumbs.html",
        error_patterns=lambda workspace: workspace.template.error_pattern_lines,
    )
)
for _kind, _steps, _on_success, _on_failure in (
    (WorkspaceOperation.PROVISION, PROVISION, is_ready, has_failed),
    (WorkspaceOperation.RETIRE, RETIRE, _put_into_trash, _not_retired),
    (WorkspaceOperation.RESTORE, RESTORE, _is_back, has_failed),
    (WorkspaceOperation.PURGE, PURGE, _is_gone, has_failed),
    (WorkspaceOperation.CHECK, CHECK, _nothing_moved, _nothing_failed),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=_on_failure,
            run=WorkspaceRun,
        ),
    )
