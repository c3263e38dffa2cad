"""Restore a workspace from the trash, or from a retirement that stopped half-way.

Each step works whether or not the retirement had got that far.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from django.utils.timezone import now

from provisioner.catalog.steps.volumes import require_online
from provisioner.engine import states as engine_states
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.specs import (
    parse_client_spec,
    rename_view,
    render_client_spec,
)
from provisioner.gateways.perforce.types import (
    ClientSpec,
    OpenedFile,
    ReopenReport,
    Shelf,
)
from provisioner.lib.refusals import StepRefused
from provisioner.lib.typed_json import from_json
from provisioner.sites.replicas import require_bound
from provisioner.workspaces.marks import marked
from provisioner.workspaces.models import Rescue, Workspace, WorkspaceClient
from provisioner.workspaces.queries import last_rescue
from provisioner.workspaces.states import (
    client_of,
    give_back_client,
    make_client_whole,
    move_client,
)
from provisioner.workspaces.steps import locks
from provisioner.workspaces.steps.clients import (
    is_own,
    name_taken,
    take_another_name,
)
from provisioner.workspaces.steps.flushing import flush_to_what_it_had
from provisioner.workspaces.steps.provision import (
    Clone,
    Flushed,
    client_spec_of,
    ensure_p4config,
)
from provisioner.workspaces.steps.run import WorkspaceRun, room_of
from provisioner.workspaces.steps.unsubmitted import our_volume

C = WorkspaceClient.State


def ensure_clone_there(run: WorkspaceRun) -> Clone:
    """Verify that the clone still exists: without it nothing can be restored.

    The owner can reach it from the next step on.
    """
    volume = our_volume(run)
    if volume is None:
        raise StepRefused(
            f"The clone {run.workspace.volume_name} is no longer on the SVM "
            "{run.site.svm}, so it cannot be restored.",
            code="clone_is_gone",
        )
    require_online(volume)
    give_back_client(client_of(run.workspace), by=run.step)
    return Clone(volume.uuid)


def ensure_visible(run: WorkspaceRun) -> None:
    """Verify that this host sees the clone at its path."""
    run.visible_root(run.workspace.junction_path)


def ensure_client(run: WorkspaceRun) -> None:
    """Create the client again from its kept form."""
    workspace = run.workspace
    found = run.perforce.clients.find(workspace.client_name)
    if found is not None and not is_own(found, workspace):
        take_another_name(run)
        found = None
    if found is not None:
        require_bound(run.server, found)
    if found is None:
        settled = client_of(workspace)
        spec, given_back_at = settled.spec, settled.given_back_at
        if settled.is_whole:
            # Somebody else deleted it: it gets what the snapshot's clones have.
            spec, given_back_at = render_client_spec(client_spec_of(workspace)), now()
        move_client(
            settled, C.DEFINED, by=run.step, spec=spec, given_back_at=given_back_at
        )
        # Nobody but its owner may use a locked client: it is locked again at the end.
        run.perforce.clients.save(locks.unlocked(_as_it_was(settled, workspace)))


def _as_it_was(settled: WorkspaceClient, workspace: Workspace) -> ClientSpec:
    """Return the client as it was, under its current name and with its current mark."""
    was, name = parse_client_spec(settled.spec), workspace.client_name
    return dataclasses.replace(
        was,
        name=name,
        view=rename_view(was.view, old=was.name, new=name),
        description=marked(was.description, mark=workspace.client_mark),
        updated_at=None,
        accessed_at=None,
    )


def ensure_flushed(run: WorkspaceRun) -> Flushed | None:
    """Flush the client to the snapshot's pin, and to what was synced later."""
    client, settled = run.workspace.client_name, client_of(run.workspace)
    if settled.is_whole:
        return None  # Its client was never deleted: it knows.
    knows = settled.state == C.FLUSHED
    if not knows and settled.state != C.DEFINED:
        # It was not deleted yet. Where anything is opened, all of it is still known.
        knows = bool(run.perforce.changes.list_opened(client))
    if knows:
        have = run.perforce_for(client).files.have_list(client)
        move_client(settled, C.FLUSHED, by=run.step)
    else:
        have = flush_to_what_it_had(run)
    return Flushed(have_count=have.count, have_digest=have.digest)


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the files that were opened; their content on disk does not change.

    The operation records which files could not be opened again.
    """
    settled = client_of(run.workspace)
    not_restored: list[str] = []
    if not settled.is_whole:
        was = _as_it_was(settled, run.workspace)
        rescue = last_rescue(run.workspace)
        if rescue is not None:
            with room_of(run).told_if_lacking():
                not_restored += reopen(run, rescue, host=was.host)
        if locks.is_locked(was):
            run.perforce.clients.save(was)
        had = parse_client_spec(settled.spec).name
        if had != run.workspace.client_name:
            ensure_p4config(run)
            not_restored.append(name_taken(had, workspace=run.workspace))
    locks.give_back(run)
    with run.writing():
        engine_states.note_findings(run.step, {"not_restored": not_restored})
        make_client_whole(client_of(run.workspace), by=run.step)


def _empty_changes(rescue: Rescue) -> list[str]:
    """Return the old numbers of pending changes without files or shelf."""
    used = {file["change"] for file in rescue.reverted}
    kept = {str(shelf["change"]) for shelf in rescue.shelves}
    return [number for number in rescue.descriptions if number not in used | kept]


def _reopened(
    run: WorkspaceRun,
    rescue: Rescue,
    perforce: PerforceGateway,
    *,
    files: list[OpenedFile],
    empty_changes: list[str],
) -> ReopenReport:
    return run_as(
        run.workspace,
        perforce.shelves.reopen,
        run.workspace.client_name,
        files,
        descriptions=rescue.descriptions,
        shelves=from_json(list[Shelf], rescue.shelves),
        empty_changes=empty_changes,
    )


def reopen(run: WorkspaceRun, rescue: Rescue, *, host: str) -> list[str]:
    """Open what a rescue says was opened, as its users; return what could not be.

    `host` is the Host of the client.
    """
    files = from_json(list[OpenedFile], rescue.reverted)
    not_opened: list[str] = []
    # Whose they were is not known; most changes of a client are its owner's.
    empty = {run.workspace.p4_user: _empty_changes(rescue)}
    users = {file.user for file in files} | {who for who in empty if empty[who]}
    for user in sorted(users):
        theirs = [file for file in files if file.user == user]
        run.progress(f"opening what {user} had opened")
        reopen = partial(
            _reopened, run, rescue, files=theirs, empty_changes=empty.get(user, [])
        )
        report = run.as_user(user, reopen, host=host)
        if report is None and theirs:
            not_opened.append(
                f"{len(theirs):,} files that {user} had opened: Cloneyard's account "
                "may not act as that user. p4 reconcile opens them again."
            )
        if report is None:
            not_opened += [
                f"Pending change {number}, which had no files: "
                f"{rescue.descriptions[number].strip()}"
                for number in empty.get(user, [])
            ]
            continue
        not_opened += [f"{n.depot_file}: {n.reason}" for n in report.not_opened]
    return not_opened
