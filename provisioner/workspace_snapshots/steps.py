"""How a workspace is compared with a snapshot, taken back from it, restored to it.

Each step is safe to repeat.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.gateways.errors import AlreadyExists, InUse, NotFound
from provisioner.gateways.hosts import snapshot_files, snapshot_restoring
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.lib.refusals import StepRefused
from provisioner.workspace_snapshots.models import (
    BEFORE_RESTORE,
    KEPT_BEFORE_RESTORES,
    ClientReading,
    SnapshotParameters,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspace_snapshots.refusals import FilesOpened
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.steps import locks, recording
from provisioner.workspaces.steps.clients import find_own_client
from provisioner.workspaces.steps.provision import Flushed
from provisioner.workspaces.steps.run import WorkspaceRun, room_of
from provisioner.workspaces.steps.unsubmitted import our_volume

MOST_NAMED = 500
MOST_ENTRIES = 5_000_000
MOST_FILES = 50_000


def _trees(run: WorkspaceRun) -> tuple[Path, Path]:
    """Return where this host sees the snapshot, and the workspace."""
    root = run.visible_root(run.workspace.junction_path)
    name = SnapshotParameters.of(run.operation).snapshot
    return root / SNAPSHOTS / name, root


def ensure_compared(run: WorkspaceRun) -> None:
    """Record what was added, changed and removed since the snapshot.

    Raises: GatewayError.
    """
    then, now = _trees(run)
    found = run_as(
        run.workspace,
        snapshot_files.compare_with_snapshot,
        then,
        now,
        most_named=MOST_NAMED,
        most_entries=MOST_ENTRIES,
        on_progress=lambda seen: run.progress("comparing", done=seen, unit="entries"),
    )
    engine_states.note_findings(run.step, dataclasses.asdict(found))


def ensure_taken_back(run: WorkspaceRun) -> None:
    """Ensure that what the snapshot has at the paths is in the workspace again.

    The operation records under which names newer content was kept.

    Raises: GatewayError, StepRefused (there is no room).
    """
    asked = SnapshotParameters.of(run.operation)
    found = snapshot_files.TakenBack(files=0)
    for path in asked.paths or [asked.path]:
        try:
            found += _take_back(run, path)
        except NotFound:
            if not asked.paths:
                raise
            reason = "The snapshot has nothing there: delete it by hand."
            found += snapshot_files.TakenBack(files=0, failed=[(path, reason)])
    reasons = {reason for _, reason in found.failed}
    room_of(run).require(after="\n".join(sorted(reasons)))
    findings = {
        "files": found.files,
        "kept": found.kept[:MOST_NAMED],
        "kept_count": len(found.kept),
        "failed": found.failed[:MOST_NAMED],
        "failed_count": len(found.failed),
    }
    engine_states.note_findings(run.step, findings)


def _take_back(run: WorkspaceRun, path: str) -> snapshot_files.TakenBack:
    """Take back a path. Raises: NotFound, GatewayError, StepRefused (no room)."""
    then, now = _trees(run)
    with room_of(run).told_if_lacking():
        return run_as(
            run.workspace,
            snapshot_files.take_back,
            then,
            now,
            path,
            label=f"newer-{run.operation.created_at:%Y-%m-%d_%H%M%S}",
            most_files=MOST_FILES,
            on_progress=lambda done: run.progress("copying", done=done, unit="files"),
        )


def kept_name(operation: Operation) -> str:
    """Return the name of the snapshot of what a restore replaces."""
    return f"{BEFORE_RESTORE}{operation.created_at:%Y-%m-%d_%H%M%S}"


def _chosen(run: WorkspaceRun) -> WorkspaceSnapshot:
    """Return the snapshot to restore to, with its reading.

    Raises: StepRefused (ONTAP has deleted it).
    """
    name = SnapshotParameters.of(run.operation).snapshot
    rows = snapshots_of(run.workspace).select_related("reading")
    found = rows.filter(name=name).first()
    if found is None:
        raise StepRefused(
            f"ONTAP has deleted the snapshot {name}. Choose another one.",
            code="snapshot_of_workspace_gone",
        )
    return found


def ensure_nothing_opened(run: WorkspaceRun) -> None:
    """Refuse to restore over opened files, or with a client that others may not use.

    Raises: FilesOpened, StepRefused.
    """
    client = find_own_client(run)
    if client is None:
        raise StepRefused(
            f"The Perforce client {run.workspace.client_name} does not exist. Let a "
            "drift check define it again.",
            code="client_missing",
        )
    if locks.is_locked(client) or client.host:
        raise StepRefused(
            f"The client {client.name} is locked, or bound to a host. Clear both with "
            "p4 client, then restore again.",
            code="client_locked",
        )
    if opened := run.perforce.changes.list_opened(client.name):
        raise FilesOpened(opened)


def ensure_kept(run: WorkspaceRun) -> None:
    """Ensure a snapshot of what is there now, before anything is replaced.

    Only so many are kept: the oldest go, but never the one to restore to, nor the one
    from before the first attempt until an attempt has succeeded.

    Raises: StepRefused.
    """
    chosen, workspace, name = _chosen(run), run.workspace, kept_name(run.operation)
    volume = our_volume(run)
    if volume is None:
        raise StepRefused(
            f"The clone {workspace.volume_name} is no longer on the SVM "
            f"{run.site.svm}.",
            code="clone_is_gone",
        )
    with contextlib.suppress(AlreadyExists):  # our own, before a lost reply
        run.ontap.create_snapshot(
            volume.uuid, name=name, comment=workspace.volume_comment
        )
    kept = run.ontap.find_snapshot(volume.uuid, name=name)
    assert kept is not None
    with run.writing():
        WorkspaceSnapshot.objects.get_or_create(
            workspace=workspace,
            ontap_uuid=kept.uuid,
            defaults={
                "name": name,
                "taken_at": kept.created_at or run.operation.created_at,
            },
        )
    ours = list(snapshots_of(workspace).filter(name__startswith=BEFORE_RESTORE))
    staying = _before_first_attempt(workspace, ours)
    others = [each for each in ours if each != chosen]
    for old in others[KEPT_BEFORE_RESTORES:]:
        if old == staying:
            continue
        with contextlib.suppress(InUse):  # a clone needs it
            run.ontap.delete_snapshot(volume.uuid, snapshot_uuid=old.ontap_uuid)


def _before_first_attempt(
    workspace: Workspace, kept: list[WorkspaceSnapshot]
) -> WorkspaceSnapshot | None:
    """Return the one from before the first restore since one succeeded."""
    restores = workspace.operations.filter(
        kind=WorkspaceOperation.RESTORE_SNAPSHOT, state=Operation.State.SUCCEEDED
    )
    last = restores.order_by("-pk").first()
    after = kept_name(last) if last else BEFORE_RESTORE
    since = [each for each in kept if each.name > after]
    return min(since, key=lambda each: each.name, default=None)


def ensure_recorded(run: WorkspaceRun) -> None:
    """Record what the client has with the snapshot of now, once.

    Raises: StepRefused.
    """
    kept = snapshots_of(run.workspace).filter(name=kept_name(run.operation))
    if kept.filter(reading=None).exists():
        known = recording.read_client(run.workspace, before=None)
        with run.writing():
            reading = ClientReading.objects.create(workspace=run.workspace, **known)
            kept.update(reading=reading)


def ensure_files(run: WorkspaceRun) -> None:
    """Ensure that the files are those of the snapshot.

    The operation records how many were copied and removed, and which could not be.

    Raises: GatewayError, StepRefused (there is no room).
    """
    then, now = _trees(run)
    with room_of(run).told_if_lacking():
        found = run_as(
            run.workspace,
            snapshot_restoring.restore_tree,
            then,
            now,
            on_progress=lambda seen: run.progress(
                "restoring", done=seen, unit="entries"
            ),
        )
    room_of(run).require(after="\n".join(sorted(found.reasons)))
    findings = {
        "copied": found.copied,
        "removed": found.removed,
        "failed": found.failed,
        "failed_count": found.failed_count,
    }
    engine_states.note_findings(run.step, findings)


def ensure_flushed(run: WorkspaceRun) -> Flushed:
    """Ensure that the have list is what it was.

    Raises: StepRefused.
    """
    return recording.flush_as_recorded(run, _reading(run))


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the files that were opened, as who had them opened.

    The operation records which could not be opened again.
    """
    not_restored = recording.reopen_as_recorded(run, _reading(run))
    findings = {**(run.operation.findings or {}), "not_restored": not_restored}
    engine_states.note_findings(run.step, findings)


def _reading(run: WorkspaceRun) -> ClientReading:
    reading = _chosen(run).reading
    assert reading is not None  # the action asks for one
    return reading
