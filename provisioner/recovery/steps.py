"""How a workspace is restored from a copy. Each step is safe to repeat."""

from __future__ import annotations

from provisioner.recovery.models import Recovery
from provisioner.workspaces.steps import provision, recording
from provisioner.workspaces.steps.provision import Clone, Flushed
from provisioner.workspaces.steps.run import WorkspaceRun


def _recovery(run: WorkspaceRun) -> Recovery:
    return Recovery.objects.get(workspace=run.workspace)


def ensure_clone(run: WorkspaceRun) -> Clone:
    """Ensure a FlexClone of the copy's snapshot. The copy stays as it is.

    Raises: StepRefused.
    """
    return provision.clone_of(
        run,
        parent_volume=run.workspace.cloned_from,
        parent_snapshot=_recovery(run).snapshot_name,
    )


def ensure_flushed(run: WorkspaceRun) -> Flushed:
    """Ensure that the have list is what the original's was."""
    return recording.flush_as_recorded(run, _recovery(run))


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the files that were opened; the operation records what cannot be."""
    recording.open_as_recorded(run, _recovery(run))
