"""Transfer work: copies of what is opened arrive in a newer workspace.

The source is only read. What is made on the way, a stand-in client and its shelves, is
removed at the end, or with the new workspace.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from provisioner.audit_log.actions import record_event
from provisioner.catalog.pins import parts_of
from provisioner.engine.results import StepResult
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.transferred_files import CopyOutcome, copy_files
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.specs import rename_view
from provisioner.gateways.perforce.standins import Purpose
from provisioner.gateways.perforce.types import Shelf
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.transfer.models import Conflict, Transfer
from provisioner.transfer.steps import conflicts
from provisioner.transfer.steps.conflicts import record_conflicts
from provisioner.transfer.steps.plan import (
    plan_of,
    require_ready,
    transfer_of,
)
from provisioner.workspaces.steps.run import WorkspaceRun, room_of

Stage = Conflict.Stage

_GONE = ("delete", "move/delete")


def ensure_shelved(run: WorkspaceRun) -> None:
    """Shelve copies of everything planned in the temporary client.

    A killed attempt starts over, since nothing has used its shelves.
    """
    transfer = transfer_of(run)
    if transfer.shelved_at is None:
        require_ready(transfer.source)
        _remove_stand_ins(run, transfer)
        plan = plan_of(transfer)
        stand_in = _make_stand_in(run, transfer)
        shelves, refused = [], []
        planned = {file.depot_file: file for file in plan.files}
        for user in sorted({file.user for file in planned.values()}):
            run.progress(f"shelving copies of what {user} has opened")
            report = run_as(
                transfer.source,
                _perforce_of(run, user).shelves.shelve_copies,
                stand_in,
                source=plan.client,
                files=list(planned.values()),
                descriptions=plan.descriptions_of(user),
            )
            shelves += [
                {**dataclasses.asdict(shelf), "user": user} for shelf in report.shelves
            ]
            refused += [
                conflicts.not_taken(planned[n.depot_file], reason=n.reason)
                for n in report.not_copied
            ]
        transfer.shelves = shelves
        transfer.shelved_at = clocks.database_now()
        with run.writing():
            transfer.save(update_fields=["shelves", "shelved_at"])
            record_conflicts(transfer, Stage.SHELVE, refused)


def _perforce_of(run: WorkspaceRun, user: str) -> PerforceGateway:
    perforce = run.perforce_of(user)
    if perforce is None:
        raise StepRefused(
            f"Cloneyard's account may no longer act as {user}. Nothing was changed "
            "in the old workspace.",
            code="cannot_transfer",
        )
    return perforce


def _make_stand_in(run: WorkspaceRun, transfer: Transfer) -> str:
    """Create the temporary client: the source's view, with its opened files.

    Return its name.
    """
    source = transfer.source
    name = transfer.workspace.stand_ins.new_name(Purpose.TRANSFER)
    client = run.perforce.clients.find(source.client_name)
    if client is None:
        raise StepRefused(
            f"The client {source.client_name} is gone from Perforce.",
            code="source_not_ready",
        )
    run.perforce.clients.save(
        dataclasses.replace(
            client,
            name=name,
            host="",
            # The drift check reads its owner from this.
            description=f"Holds copies of {source.client_name} for the Cloneyard "
            f"workspace {transfer.workspace.name} ({transfer.workspace.tag}).\n",
            options=client.options.replace(" locked", " unlocked"),
            stream="",
            type="",
            server_id="",
            view=rename_view(client.view, old=client.name, new=name),
            updated_at=None,
            accessed_at=None,
        )
    )
    run.perforce.files.flush_to(
        name,
        [
            (file.depot_file, file.revision)
            for file in plan_of(transfer).files
            if file.revision and file.client_file
        ],
    )
    return name


def _remove_stand_ins(run: WorkspaceRun, transfer: Transfer) -> None:
    """Ensure that the temporary client, its changes and shelves are gone.

    Safe to repeat.
    """
    transfer.workspace.stand_ins.remove_all(run.perforce, Purpose.TRANSFER)


def ensure_opened(run: WorkspaceRun) -> None:
    """Open the shelved files in the new workspace."""
    transfer = transfer_of(run)
    if transfer.transferred_at is not None:
        return
    plan, workspace = plan_of(transfer), transfer.workspace
    planned = {file.depot_file: file for file in plan.files}
    found: list[Conflict] = []
    root = str(workspace.path)
    for user in plan.users:
        run.progress(f"opening what {user} had opened")
        with room_of(run).told_if_lacking():
            report = run_as(
                workspace,
                _perforce_of(run, user).shelves.open_copies,
                workspace.client_name,
                shelves=_shelves_of(transfer, user),
                descriptions=plan.descriptions_of(user),
                label=f"of-{workspace.snapshot.name}",
            )
        _require_room(run, [n.reason for n in report.not_opened])
        transfer.changes |= report.changes
        found += [
            conflicts.not_taken(planned[n.depot_file], reason=n.reason)
            for n in report.not_opened
        ]
        found += [
            conflicts.built_there(_below(place, root), _below(aside, root))
            for place, aside in report.put_aside
        ]
    with run.writing():
        transfer.save(update_fields=["changes"])
        record_conflicts(transfer, Stage.OPEN, found)


def _require_room(run: WorkspaceRun, reasons: list[str]) -> None:
    """Refuse if files failed for lack of space: that is no conflict, but retried.

    Raises: StepRefused.
    """
    room_of(run).require(after="\n".join(reasons))


def _below(path: str, root: str) -> str:
    return path.removeprefix(root.rstrip("/") + "/")


def _shelves_of(transfer: Transfer, user: str) -> list[Shelf]:
    return [
        Shelf(
            change=shelf["change"],
            was=shelf["was"],
            files=tuple(shelf["files"]),
            made_by_us=True,
        )
        for shelf in transfer.shelves
        if shelf["user"] == user
    ]


@dataclass(frozen=True)
class Merged(StepResult):
    """Depot paths whose content is no longer the source's."""

    step = "merge"
    merged: list[str]


def ensure_merged(run: WorkspaceRun) -> Merged:
    """Sync all opened files to the new workspace's change, and merge them.

    Conflicts are listed with the commands that resolve them.
    """
    transfer = transfer_of(run)
    if transfer.transferred_at is not None:
        return Merged([])
    workspace, snapshot = transfer.workspace, transfer.workspace.snapshot
    planned = {file.depot_file: file for file in plan_of(transfer).files}
    merged: list[str] = []
    found: list[Conflict] = []
    for user in plan_of(transfer).users:
        run.progress(f"merging what {user} had opened")
        with room_of(run).told_if_lacking():
            report = run_as(
                workspace,
                _perforce_of(run, user).changes.merge_opened,
                workspace.client_name,
                change=snapshot.change,
                parts=parts_of(snapshot),
            )
        merged += report.merged
        found += [conflicts.needs_resolve(item) for item in report.to_resolve]
        found += [
            conflicts.deleted_there(path, change=change)
            for path, change in report.gone.items()
        ]
        found += [
            conflicts.changed_there(planned[path], change=change)
            for path, change in report.changed.items()
            if planned[path].action in _GONE
        ]
    with run.writing():
        record_conflicts(transfer, Stage.MERGE, found)
    return Merged(merged)


def ensure_files_copied(run: WorkspaceRun) -> None:
    """Copy the untracked files, if requested, and files that could not be opened.

    Nothing in the new workspace is overwritten.
    """
    transfer = transfer_of(run)
    if transfer.transferred_at is not None:
        return
    require_ready(transfer.source)
    plan, label = plan_of(transfer), f"from-{transfer.source.name}"
    not_opened = _copy_what_was_not_opened(run, transfer, label=label)
    outcome = _copy(run, transfer, plan.untracked, label=label, always_aside=False)
    found = [
        *(conflicts.kept_aside(path, name) for path, name in outcome.kept_aside),
        *(conflicts.not_copied(path, reason=why) for path, why in outcome.failed),
    ]
    with run.writing():
        for conflict in not_opened:
            conflict.save()
        record_conflicts(transfer, Stage.COPY, found)


def _copy_what_was_not_opened(
    run: WorkspaceRun, transfer: Transfer, *, label: str
) -> list[Conflict]:
    """Return the conflicts about these files, with where the copies are."""
    plan = plan_of(transfer)
    planned = {file.depot_file: file for file in plan.files}
    refused = {
        place: (conflict, file)
        for conflict in transfer.conflicts.to_copy()
        if (file := planned[conflict.path]).action not in _GONE
        and (place := plan.place_of(file))
    }
    outcome = _copy(run, transfer, list(refused), label=label, always_aside=True)
    for place, name in outcome.kept_aside:
        conflict, file = refused[place]
        conflicts.with_copy(conflict, file, place=place, copy=name)
    for place, reason in outcome.failed:
        conflict, _ = refused[place]
        conflicts.without_copy(conflict, reason=reason)
    return [conflict for conflict, _ in refused.values()]


def _copy(
    run: WorkspaceRun,
    transfer: Transfer,
    paths: list[str],
    *,
    label: str,
    always_aside: bool,
) -> CopyOutcome:
    if not paths:
        return CopyOutcome()

    def show(done: int) -> None:
        run.progress("copying", done=done, total=len(paths), unit="files")

    outcome = run_as(
        transfer.workspace,
        copy_files,
        run.visible_root(transfer.source.junction_path),
        run.visible_root(transfer.workspace.junction_path),
        paths,
        label=label,
        always_aside=always_aside,
        on_progress=show,
    )
    _require_room(run, [reason for _, reason in outcome.failed])
    return outcome


def ensure_shelves_gone(run: WorkspaceRun) -> None:
    """Delete the temporary client and its shelves."""
    transfer = transfer_of(run)
    _remove_stand_ins(run, transfer)
    if transfer.transferred_at is None:
        transfer.transferred_at = clocks.database_now()
        with run.writing():
            transfer.save(update_fields=["transferred_at"])
            _record(run, transfer)


def _record(run: WorkspaceRun, transfer: Transfer) -> None:
    left = transfer.conflicts_left
    message = (
        f"Transferred {transfer.counts['opened']:,} opened and "
        f"{transfer.counts['untracked']:,} untracked files from {transfer.source.name}"
        + (f"; {left:,} are left for you to resolve." if left else ".")
    )
    with run.writing():
        for workspace in (transfer.workspace, transfer.source):
            record_event(
                workspace,
                kind="work_transferred",
                message=message,
                actor=run.operation.requested_by,
                data={"from": transfer.source.pk, "to": transfer.workspace.pk},
            )
