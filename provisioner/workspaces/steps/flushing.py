"""Flush a client to a snapshot without blocking other users of the server."""

from __future__ import annotations

from provisioner.catalog.pins import goes_in_batches, parts_of, pinned_have
from provisioner.gateways import registry
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import FlushWatch, HaveList
from provisioner.lib.refusals import StepRefused
from provisioner.sites.models import PerforceServer
from provisioner.sites.replicas import server_with
from provisioner.workspaces.models import Workspace, WorkspaceClient
from provisioner.workspaces.queries import last_rescue
from provisioner.workspaces.states import client_of, move_client
from provisioner.workspaces.steps.run import WorkspaceRun


def server_with_pin(run: WorkspaceRun) -> PerforceServer:
    """Return the server to flush at, once it has the change of the snapshot.

    Raises: Busy, StepRefused (the site's server is behind; see server_with).
    """
    began_at = run.step.first_started_at
    assert began_at is not None
    change = run.workspace.snapshot.change
    server = server_with(run.server, change=change, since=began_at)
    if server != run.server:
        run.progress(f"{run.server} is behind: flushing at {server}")
    return server


def flush_towards_pin(
    perforce: PerforceGateway, workspace: Workspace, *, watch: FlushWatch | None = None
) -> HaveList:
    """Flush to the snapshot's change, a large one in batches; return the have list."""
    pin = workspace.snapshot
    return perforce.files.flush_towards(
        workspace.client_name,
        change=pin.change,
        parts=parts_of(pin),
        wanted=pinned_have(pin),
        in_batches=goes_in_batches(pin.have_count),
        watch=watch,
    )


def flush_to_pin(
    perforce: PerforceGateway, workspace: Workspace, *, watch: FlushWatch | None = None
) -> HaveList:
    """Flush the client to the have list of its snapshot's pin.

    Raises: StepRefused if a flush does not lead there.
    """
    pin = workspace.snapshot
    have = flush_towards_pin(perforce, workspace, watch=watch)
    if have != pinned_have(pin):
        raise StepRefused(
            f"After the flush to change {pin.change} the have list has {have.count:,} "
            f"files and is not the {pin.have_count:,} of the snapshot {pin.name}. The "
            "depot or the view changed under the pin: build the template again.",
            code="have_differs_from_pin",
        )
    return have


def flush_to_what_it_had(run: WorkspaceRun) -> HaveList:
    """Flush the client to the snapshot's pin, and to what was synced later."""
    workspace = run.workspace
    total = workspace.snapshot.have_count
    perforce = registry.perforce_for(server_with_pin(run), client=workspace.client_name)
    run.progress("flushing", done=0, total=total, unit="files")
    have = flush_towards_pin(perforce, workspace, watch=run.flush_watch())
    rescue = last_rescue(workspace)
    if rescue is not None and rescue.have_differences:
        perforce.files.flush_to(
            workspace.client_name,
            [(path, revision) for path, revision in rescue.have_differences],
        )
        have = perforce.files.have_list(workspace.client_name)
    move_client(client_of(workspace), WorkspaceClient.State.FLUSHED, by=run.step)
    return have
