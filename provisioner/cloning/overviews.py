"""Clones as the page of a workspace shows them."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.cloning.models import WorkspaceClone
from provisioner.cloning.queries import clones_held_by
from provisioner.lib.prepared import Prepared
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_clone_workspace


@dataclass(frozen=True, kw_only=True)
class ClonesOf:
    """Where a workspace is from, its clones, and whether the reader may clone it."""

    cloning: WorkspaceClone | None
    clones: list[WorkspaceClone]
    may_clone: bool

    @property
    def is_shown(self) -> bool:
        return bool(self.cloning or self.clones or self.may_clone)


_MADE_FROM = Prepared(
    lambda workspace: WorkspaceClone.objects.filter(workspace=workspace).select_related(
        "source"
    ),
)

_HELD = Prepared(clones_held_by)


def clones_of(workspace: Workspace, user: User) -> ClonesOf:
    """Return what the page of a workspace shows, in two queries."""
    is_ready = workspace.state == Workspace.State.READY
    return ClonesOf(
        cloning=_MADE_FROM.first(workspace.pk),
        clones=_HELD.rows(workspace.pk),
        may_clone=is_ready and can_clone_workspace(user, workspace),
    )
