"""Verify that the work arrived unchanged, before the source is retired."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.transferred_files import differing_files
from provisioner.gateways.perforce.paths import local_place
from provisioner.gateways.perforce.shelves.copies import AS_OPENED
from provisioner.gateways.perforce.types import OpenedFile
from provisioner.transfer.models import Conflict, Transfer
from provisioner.transfer.steps import conflicts
from provisioner.transfer.steps.conflicts import record_conflicts
from provisioner.transfer.steps.contents import Merged
from provisioner.transfer.steps.plan import (
    plan_of,
    require_ready,
    stamp_now,
    transfer_of,
)
from provisioner.workspaces.steps.run import WorkspaceRun

_PLAIN_TYPES = ("text", "binary", "symlink")
_GONE = ("delete", "move/delete")


def ensure_proven(run: WorkspaceRun) -> None:
    """Compare what arrived with what was planned, and both trees file by file.

    Differences are listed; with any, the source stays.
    """
    transfer = transfer_of(run)
    if transfer.transferred_at is not None:
        return
    require_ready(transfer.source)
    found = [*_opened_otherwise(run, transfer), *_different_content(run, transfer)]
    if _has_changed_since(run, transfer):
        found.append(
            conflicts.differs(
                str(transfer.source.path),
                reason=f"Somebody worked in {transfer.source.name} while its work "
                "was transferred. Their last changes may be only there.",
            )
        )
    plan = plan_of(transfer)
    shelved = [path for shelf in transfer.shelves for path in shelf["files"]]
    refused = _explained(transfer)
    transfer.counts = {
        "opened": len(shelved),
        "merged": len(run.result_of(Merged).merged),
        "untracked": sum(path not in refused for path in plan.untracked),
        "changes": sum(was != "default" for was in transfer.changes),
        "left": plan.left,
        "left_changes": plan.left_changes,
    }
    with run.writing():
        record_conflicts(transfer, Conflict.Stage.PROOF, found)
        transfer.conflicts_left = transfer.conflicts.count()
        transfer.save(update_fields=["conflicts_left", "counts"])


def _explained(transfer: Transfer) -> set[str]:
    """Return the paths of conflicts that earlier steps found."""
    return transfer.conflicts.exclude(stage=Conflict.Stage.PROOF).paths()


def _opened_otherwise(run: WorkspaceRun, transfer: Transfer) -> Iterator[Conflict]:
    """Yield files opened differently that no conflict explains yet."""
    opened = _opened_now(run, transfer)
    explained = _explained(transfer)
    for file in plan_of(transfer).files:
        if file.depot_file in explained:
            continue
        now = opened.get(file.depot_file)
        wanted = AS_OPENED.get(file.action, file.action)
        change = transfer.changes.get(file.change)
        if now is None:
            reason = f"It was opened for {file.action} and is not opened now."
        elif (now.action, now.type, now.change) != (wanted, file.type, change):
            reason = (
                f"It is opened for {now.action} as {now.type} in change {now.change}, "
                f"and was for {file.action} as {file.type} in {file.change}."
            )
        elif file.action in AS_OPENED:
            yield conflicts.history_lost(file)
            continue
        else:
            continue
        yield conflicts.differs(file.depot_file, reason=reason)


def _opened_now(run: WorkspaceRun, transfer: Transfer) -> dict[str, OpenedFile]:
    files = run.perforce.changes.list_opened(transfer.workspace.client_name)
    return {file.depot_file: file for file in files}


def _different_content(run: WorkspaceRun, transfer: Transfer) -> Iterator[Conflict]:
    """Yield files that were not merged and differ from the source's."""
    plan, workspace = plan_of(transfer), transfer.workspace
    merged = set(run.result_of(Merged).merged)
    explained = _explained(transfer) | merged
    opened = _opened_now(run, transfer)
    at: dict[str, str] = {}
    for file in plan.files:
        now = opened.get(file.depot_file)
        if now is None or file.depot_file in explained or not _is_comparable(file):
            continue
        place = plan.place_of(file)
        root = str(workspace.path)
        if place and place == local_place(now, client=workspace.client_name, root=root):
            at[place] = file.depot_file
    differing = run_as(
        workspace,
        differing_files,
        run.visible_root(transfer.source.junction_path),
        run.visible_root(workspace.junction_path),
        list(at),
    )
    for place in differing:
        yield conflicts.differs(
            at[place], reason="Its content differs between the workspaces."
        )


def _is_comparable(file: OpenedFile) -> bool:
    """Return whether the bytes on disk are those that Perforce keeps."""
    base, _, modifiers = file.type.partition("+")
    return file.action not in _GONE and base in _PLAIN_TYPES and "k" not in modifiers


def _has_changed_since(run: WorkspaceRun, transfer: Transfer) -> bool:
    """Return whether the source has changed since it was checked."""
    plan, source = plan_of(transfer), transfer.source
    opened = {
        (file.depot_file, file.action, file.change, file.type)
        for file in run.perforce.changes.list_opened(source.client_name)
    }
    planned = {(f.depot_file, f.action, f.change, f.type) for f in plan.opened}
    root = run.visible_root(source.junction_path)
    return opened != planned or stamp_now(root, plan) != plan.stamp
