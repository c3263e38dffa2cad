"""Record what a client has, and give the same to the client of another clone."""

from __future__ import annotations

import dataclasses
from typing import Any

from provisioner.engine import states as engine_states
from provisioner.gateways import registry
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import (
    ReadClient,
    RecordedClient,
    Rescue,
    Workspace,
)
from provisioner.workspaces.steps import restore
from provisioner.workspaces.steps.flushing import flush_towards_pin, server_with_pin
from provisioner.workspaces.steps.provision import Flushed
from provisioner.workspaces.steps.rescue import have_differences
from provisioner.workspaces.steps.run import WorkspaceRun, room_of


def read_client(workspace: Workspace, *, before: ReadClient | None) -> dict[str, Any]:
    """Return the columns of a `ReadClient` with what is opened and what was synced.

    Reading refreshes the client's Access date, by which abandoned workspaces are found.
    So a client that nobody used since `before` is not read again.

    Raises: StepRefused (it does not exist).
    """
    client = workspace.client_name
    perforce = registry.perforce_for(workspace.perforce_server, client=client)
    listed = _listed(perforce.clients.find_all(name_filter=client), client)
    if listed is None:
        raise StepRefused(
            f"The Perforce client {client} does not exist, so nothing is known of "
            "what is opened. Let a drift check define it again.",
            code="client_missing",
        )
    if before and before.accessed_at and before.accessed_at == listed.accessed_at:
        return {
            "opened": before.opened,
            "descriptions": before.descriptions,
            "have_differences": before.have_differences,
            "accessed_at": before.accessed_at,
        }
    pending = perforce.changes.list_pending(client)
    opened = perforce.changes.list_opened(client)
    known = {
        "opened": [dataclasses.asdict(file) for file in opened],
        "descriptions": {
            str(each.change): each.description
            for each in pending
            if each.files or not each.is_shelved
        },
        "have_differences": have_differences(workspace, perforce),
    }
    again = _listed(perforce.clients.find_all(name_filter=client), client)
    return {**known, "accessed_at": again.accessed_at if again else None}


def _listed(clients: list[ClientSpec], name: str) -> ClientSpec | None:
    return next((each for each in clients if each.name == name), None)


def flush_as_recorded(run: WorkspaceRun, recorded: RecordedClient) -> Flushed:
    """Ensure that the have list is what the recorded client's was."""
    workspace, differences = run.workspace, recorded.have_differences
    perforce = registry.perforce_for(server_with_pin(run), client=workspace.client_name)
    total = workspace.snapshot.have_count
    run.progress("flushing", done=0, total=total, unit="files")
    have = flush_towards_pin(perforce, workspace, watch=run.flush_watch())
    if differences:
        perforce.files.flush_to(
            workspace.client_name,
            [(path, revision) for path, revision in differences],
        )
        have = perforce.files.have_list(workspace.client_name)
    return Flushed(have_count=have.count, have_digest=have.digest)


def open_as_recorded(
    run: WorkspaceRun, recorded: RecordedClient, *, user: str = ""
) -> None:
    """Open the files that were opened; their content on disk does not change.

    Each is opened as who had it opened, or all as `user`. The operation records which
    could not be opened again.
    """
    not_restored = reopen_as_recorded(run, recorded, user=user)
    with run.writing():
        engine_states.note_findings(run.step, {"not_restored": not_restored})


def reopen_as_recorded(
    run: WorkspaceRun, recorded: RecordedClient, *, user: str = ""
) -> list[str]:
    """Open the files that were opened; return sentences on those that could not be."""
    client = run.workspace.client_name
    as_was = Rescue(
        workspace=run.workspace,
        reverted=[_of_client(file, client, user) for file in recorded.opened],
        descriptions=recorded.descriptions,
    )
    with room_of(run).told_if_lacking():
        return restore.reopen(run, as_was, host="")


def _of_client(file: dict[str, Any], client: str, user: str) -> dict[str, Any]:
    """Return an opened file as it would be on another client of the same view."""
    path = file["client_file"].removeprefix(f"//{file['client']}/")
    return {
        **file,
        "client": client,
        "client_file": f"//{client}/{path}",
        "user": user or file["user"],
    }
