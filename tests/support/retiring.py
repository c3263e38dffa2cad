"""Retiring and restoring in the lab, until nothing moves any more."""

from __future__ import annotations

from pathlib import Path

from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import (
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.support.entries import entries_below
from tests.support.jobs import settle


def retire(workspace: Workspace, *, unsubmitted: str = Unsubmitted.RESCUE) -> Operation:
    operation = workspace_retire(
        by=workspace.owner, workspace=workspace, unsubmitted=unsubmitted
    )
    settle(workspace)
    operation.refresh_from_db()
    return operation


def restore(workspace: Workspace) -> Operation:
    operation = workspace_restore(by=workspace.owner, workspace=workspace)
    settle(workspace)
    operation.refresh_from_db()
    return operation


def contents_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(entries_below(root))
        if path.is_file() and not path.is_symlink()
    }


def retire_and_purge(
    workspace: Workspace, *, unsubmitted: str = Unsubmitted.REFUSE, purge: bool = True
) -> Operation:
    operation = workspace_retire(
        by=workspace.owner, workspace=workspace, unsubmitted=unsubmitted, purge=purge
    )
    settle(workspace)
    operation.refresh_from_db()
    return operation
