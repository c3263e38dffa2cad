"""The proof that work arrived as it was, before anything else becomes of its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.gateways.hosts import carried_files
from provisioner.gateways.perforce.paths import local_place
from provisioner.gateways.perforce.shelves.copies import AS_OPENED
from provisioner.gateways.perforce.types import OpenedFile
from provisioner.transfer.models import Carry
from provisioner.transfer.steps import conflicts
from provisioner.transfer.steps.plan import (
    carry_of,
    opened_in,
    place_of,
    plan_of,
    require_ready,
    stamp_now,
)
from provisioner.workspaces.steps.run import WorkspaceRun

_PLAIN_TYPES = ("text", "binary", "symlink")
_GONE = ("delete", "move/delete")


def ensure_proven(run: WorkspaceRun) -> dict[str, Any]:
    """Compare what arrived with what was planned, and both trees file by file.

    What is not as planned is listed; then the source stays where it is.
    """
    carry = carry_of(run)
    if carry.carried_at is not None:
        return {}
    require_ready(carry.source)
    found = [*_opened_otherwise(run, carry), *_different_content(run, carry)]
    if _has_changed_since(run, carry):
        found.append(
            conflicts.differs(
                str(carry.source.path),
                reason=f"Somebody worked in {carry.source.name} while its work was "
                "taken along: what they did last may be there alone.",
            )
        )
    carry.conflicts["5 proof"] = found
    plan = plan_of(carry)
    shelved = [path for shelf in carry.shelves or () for path in shelf["files"]]
    refused = {c["path"] for c in carry.all_conflicts}
    carry.counts = {
        "opened": len(shelved),
        "merged": len(run.result_of("merge").get("merged", ())),
        "untracked": sum(path not in refused for path in plan["untracked"]),
        "changes": sum(was != "default" for was in carry.changes),
        "left": plan["left"],
        "left_changes": plan["left_changes"],
    }
    carry.save(update_fields=["conflicts", "counts"])
    return {"conflicts": len(carry.all_conflicts)}


def _opened_otherwise(run: WorkspaceRun, carry: Carry) -> Iterator[conflicts.Conflict]:
    """Yield what is not opened as it was, and is not explained yet."""
    opened = _opened_now(run, carry)
    explained = {conflict["path"] for conflict in carry.all_conflicts}
    for file in opened_in(plan_of(carry)):
        if file.depot_file in explained:
            continue
        now = opened.get(file.depot_file)
        wanted = AS_OPENED.get(file.action, file.action)
        change = carry.changes.get(file.change)
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


def _opened_now(run: WorkspaceRun, carry: Carry) -> dict[str, OpenedFile]:
    files = run.perforce.changes.list_opened(carry.workspace.client_name)
    return {file.depot_file: file for file in files}


def _different_content(run: WorkspaceRun, carry: Carry) -> Iterator[conflicts.Conflict]:
    """Yield files that nobody merged and whose content is not the source's."""
    plan, workspace = plan_of(carry), carry.workspace
    merged = set(run.result_of("merge").get("merged", ()))
    explained = {conflict["path"] for conflict in carry.all_conflicts} | merged
    opened = _opened_now(run, carry)
    at: dict[str, str] = {}
    for file in opened_in(plan):
        now = opened.get(file.depot_file)
        if now is None or file.depot_file in explained or not _is_comparable(file):
            continue
        place = place_of(file, plan)
        root = str(workspace.path)
        if place and place == local_place(now, client=workspace.client_name, root=root):
            at[place] = file.depot_file
    differing = carried_files.differing_as(
        run.visible_root(carry.source.junction_path),
        run.visible_root(workspace.junction_path),
        list(at),
        uid=workspace.uid,
        gid=workspace.gid,
    )
    for place in differing:
        yield conflicts.differs(
            at[place], reason="Its content is not the same in both workspaces."
        )


def _is_comparable(file: OpenedFile) -> bool:
    """Say whether the bytes on disk are those that Perforce keeps."""
    base, _, modifiers = file.type.partition("+")
    return file.action not in _GONE and base in _PLAIN_TYPES and "k" not in modifiers


def _has_changed_since(run: WorkspaceRun, carry: Carry) -> bool:
    """Say whether the source is not as it was when it was looked at."""
    plan, source = plan_of(carry), carry.source
    opened = {
        (file.depot_file, file.action, file.change, file.type)
        for file in run.perforce.changes.list_opened(source.client_name)
    }
    planned = {(f["depot_file"], f["action"], f["change"], f["type"])
               for f in plan["opened"]}  # fmt: skip
    root = run.visible_root(source.junction_path)
    return opened != planned or stamp_now(root, plan) != plan["stamp"]
