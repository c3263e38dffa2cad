"""Bringing a workspace back from the trash, or from a retirement that stopped half way.

Each step has what it says, whether or not the retirement had come to undo it.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from django.db import transaction

from provisioner.catalog.steps.volumes import require_online
from provisioner.engine import states as engine_states
from provisioner.gateways.fence import require_leave
from provisioner.gateways.hosts import client_files
from provisioner.gateways.perforce.specs import parse_client_spec, render_client_spec
from provisioner.gateways.perforce.types import ClientSpec, OpenedFile, Shelf
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.steps import locks
from provisioner.workspaces.steps.provision import client_spec_of
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.settled import (
    flush_to_what_it_had,
    is_flushed,
    last_rescue,
    note_flushed,
)
from provisioner.workspaces.steps.unsubmitted import our_volume


def ensure_clone_there(run: WorkspaceRun) -> dict[str, Any]:
    """Have the clone: one that is gone cannot be brought back."""
    volume = our_volume(run)
    if volume is None:
        raise StepRefused(
            f"The clone {run.workspace.volume_name} is not on the SVM "
            f"{run.site.svm} any more, so it cannot be brought back.",
            code="clone_is_gone",
        )
    require_online(volume)
    return {"volume_uuid": volume.uuid}


def ensure_visible(run: WorkspaceRun) -> dict[str, Any]:
    """See the clone at its path on this host."""
    run.visible_root(run.workspace.junction_path)
    return {}


def ensure_client(run: WorkspaceRun) -> dict[str, Any]:
    """Have the client with the form that it had."""
    workspace = run.workspace
    found = run.perforce.clients.find(workspace.client_name)
    if found is not None and str(workspace.tag) not in found.description:
        raise StepRefused(
            f"A client named {workspace.client_name} exists in Perforce and is not "
            "ours; it was left alone.",
            code="client_name_taken",
        )
    if found is None and not workspace.client_spec:
        # Somebody else deleted it: it gets what the snapshot's clones have.
        workspace.client_spec = render_client_spec(client_spec_of(workspace))
        require_leave()
        workspace.save(update_fields=["client_spec"])
    if found is None:
        # Nobody but its owner may use a locked client: it is locked again at the end.
        wanted = _as_it_was(workspace)
        note_flushed(run, knows=False)
        run.perforce.clients.save(
            dataclasses.replace(
                wanted, options=wanted.options.replace(" locked", " unlocked")
            )
        )
    return {"client": workspace.client_name}


def _as_it_was(workspace: Workspace) -> ClientSpec:
    return dataclasses.replace(
        parse_client_spec(workspace.client_spec), updated_at=None, accessed_at=None
    )


def ensure_flushed(run: WorkspaceRun) -> dict[str, Any]:
    """Have the server believe what the workspace has: the pin, and what came later."""
    workspace = run.workspace
    if not workspace.client_spec:
        return {}  # Its client was never deleted: it knows.
    knows = is_flushed(run)
    if knows is None:
        # It was not deleted yet, or is flushed already: nothing is opened before that.
        knows = bool(run.perforce.changes.list_opened(workspace.client_name))
    if knows:
        client = workspace.client_name
        have = run.perforce_for(client).files.have_list(client)
    else:
        have = flush_to_what_it_had(run)
    return {"have_count": have.count, "have_digest": have.digest}


def ensure_opened(run: WorkspaceRun) -> dict[str, Any]:
    """Have open what was open; the content on disk stays as it is.

    What could not be opened again is kept on the operation, in sentences.
    """
    workspace = run.workspace
    not_restored: list[str] = []
    rescue = last_rescue(run) if workspace.client_spec else None
    if rescue is not None:
        not_restored += _reopen(run, rescue)
    if workspace.client_spec and " locked" in workspace.client_spec:
        run.perforce.clients.save(_as_it_was(workspace))
    locks.give_back(run)
    require_leave()
    with transaction.atomic():
        engine_states.note_findings(run.operation, {"not_restored": not_restored})
        workspace.client_spec = ""
        workspace.save(update_fields=["client_spec"])
    return {"not_restored": len(not_restored)}


def _empty_changes(rescue: Rescue) -> list[str]:
    """Return the old numbers of pending changes that had no files, and no shelf."""
    used = {file["change"] for file in rescue.reverted}
    kept = {str(shelf["change"]) for shelf in rescue.shelves}
    return [number for number in rescue.descriptions if number not in used | kept]


def _reopen(run: WorkspaceRun, rescue: Rescue) -> list[str]:
    files = [OpenedFile(**file) for file in rescue.reverted]
    shelves = [Shelf(**{**s, "files": tuple(s["files"])}) for s in rescue.shelves]
    not_opened: list[str] = []
    host = parse_client_spec(run.workspace.client_spec).host
    # Whose they were is not known; most changes of a client are its owner's.
    empty = {run.workspace.p4_user: _empty_changes(rescue)}
    users = {file.user for file in files} | {who for who in empty if empty[who]}
    for user in sorted(users):
        theirs = [file for file in files if file.user == user]
        run.progress(f"opening what {user} had opened")
        report = run.as_user(
            user,
            partial(
                client_files.reopen_as,
                client=run.workspace.client_name,
                files=theirs,
                descriptions=rescue.descriptions,
                shelves=shelves,
                empty_changes=empty.get(user, []),
                uid=run.workspace.uid,
                gid=run.workspace.gid,
            ),
            host=host,
        )
        if report is None and theirs:
            not_opened.append(
                f"{len(theirs):,} files that {user} had opened: the account of "
                "Cloneyard may not act as that user. p4 reconcile opens them again."
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
