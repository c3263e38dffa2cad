"""How a workspace is compared with a snapshot, and files are taken back from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from provisioner.engine import states as engine_states
from provisioner.gateways.hosts import snapshot_files
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.workspace_snapshots.models import SnapshotParameters
from provisioner.workspaces.steps.run import WorkspaceRun, room_of

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
    """Ensure that what the snapshot has at the path is in the workspace again.

    The operation records under which names newer content was kept.

    Raises: GatewayError, StepRefused (there is no room).
    """
    then, now = _trees(run)
    with room_of(run).told_if_lacking():
        found = run_as(
            run.workspace,
            snapshot_files.take_back,
            then,
            now,
            SnapshotParameters.of(run.operation).path,
            label=f"newer-{run.operation.created_at:%Y-%m-%d_%H%M%S}",
            most_files=MOST_FILES,
            on_progress=lambda done: run.progress("copying", done=done, unit="files"),
        )
    room_of(run).require(after="\n".join(reason for _, reason in found.failed))
    findings = {
        "files": found.files,
        "kept": found.kept[:MOST_NAMED],
        "kept_count": len(found.kept),
        "failed": found.failed[:MOST_NAMED],
        "failed_count": len(found.failed),
    }
    engine_states.note_findings(run.step, findings)
