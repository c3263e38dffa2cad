"""How a workspace is restored from a copy. Each step is safe to repeat."""

from __future__ import annotations

from typing import Any

from provisioner.engine import slots
from provisioner.engine import states as engine_states
from provisioner.gateways import registry
from provisioner.recovery.models import Recovery
from provisioner.workspaces.models import Rescue
from provisioner.workspaces.steps import provision, restore
from provisioner.workspaces.steps.flushing import flush_towards_pin, server_with_pin
from provisioner.workspaces.steps.provision import Clone, Flushed
from provisioner.workspaces.steps.run import WorkspaceRun, room_of


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
    workspace, differences = run.workspace, _recovery(run).have_differences
    perforce = registry.perforce_for(server_with_pin(run), client=workspace.client_name)
    total = workspace.snapshot.have_count
    run.progress("flushing", done=0, total=total, unit="files")
    have = flush_towards_pin(
        perforce, workspace, on_command=lambda use: slots.observe(run.step, use)
    )
    if differences:
        perforce.files.flush_to(
            workspace.client_name,
            [(path, revision) for path, revision in differences],
        )
        have = perforce.files.have_list(workspace.client_name)
    return Flushed(have_count=have.count, have_digest=have.digest)


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the files that were opened; their content on disk does not change.

    The operation records which files could not be opened again.
    """
    recovery, client = _recovery(run), run.workspace.client_name
    as_was = Rescue(
        workspace=run.workspace,
        reverted=[_of_client(file, client) for file in recovery.opened],
        descriptions=recovery.descriptions,
    )
    with room_of(run).told_if_lacking():
        not_restored = restore.reopen(run, as_was, host="")
    with run.writing():
        engine_states.note_findings(run.step, {"not_restored": not_restored})


def _of_client(file: dict[str, Any], client: str) -> dict[str, Any]:
    """Return an opened file as it would be on another client of the same view."""
    path = file["client_file"].removeprefix(f"//{file['client']}/")
    return {**file, "client": client, "client_file": f"//{client}/{path}"}
