"""What prevents the split of a workspace's clone."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.cloning.queries import clones_held_by
from provisioner.cloning.refusals import HasClones
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.models import Operation
from provisioner.lib.refusals import NotAllowed
from provisioner.lib.sizes import size_text
from provisioner.sites.queries import find_space
from provisioner.storage.models import SplitPolicy
from provisioner.storage.refusals import (
    AlreadyIndependent,
    NoRoomToSplit,
    SplitNotAllowed,
    WorkspaceCopied,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.refusals import WorkspaceNotReady


def require_permission(by: User, workspace: Workspace) -> None:
    """Refuse whoever may not split a workspace or stop its split.

    Raises: NotAllowed, SplitNotAllowed.
    """
    if not can_change_workspace(by, workspace):
        raise NotAllowed
    if by.is_administrator:
        return
    policy = SplitPolicy.objects.filter(site=workspace.site, owners_may_split=True)
    if not policy.exists():
        raise SplitNotAllowed(site=workspace.site.name)


def require_splittable(workspace: Workspace) -> None:
    """Refuse what cannot be split now, as far as rows tell.

    Raises: AlreadyIndependent, WorkspaceNotReady, HasClones, WorkspaceCopied,
    NoRoomToSplit.
    """
    if workspace.is_independent:
        raise AlreadyIndependent(name=workspace.name)
    if workspace.state != Workspace.State.READY:
        raise WorkspaceNotReady(
            name=workspace.name, state=workspace.get_state_display().lower()
        )
    running = running_operation(workspace)
    if running is not None and running.kind != WorkspaceOperation.SPLIT:
        raise WorkspaceNotReady(name=workspace.name, state="busy")
    held = clones_held_by(workspace).first()
    if held is not None:
        raise HasClones(name=workspace.name, clone=held.workspace.name)
    copies = WorkspaceCopy.objects.filter(workspace=workspace)
    sent = copies.exclude(relationship_uuid="").select_related("site").first()
    if sent is not None:
        raise WorkspaceCopied(name=workspace.name, site=sent.site.name)
    copied, room = workspace.split_bytes, room_of(workspace)
    if copied is not None and room is not None and copied >= room:
        raise NoRoomToSplit(
            name=workspace.name,
            copied=size_text(copied),
            site=workspace.site.name,
            room=size_text(room),
        )


def running_operation(workspace: Workspace) -> Operation | None:
    """Return the operation that is under way on a workspace."""
    return workspace.operations.filter(state=Operation.State.RUNNING).first()


def room_of(workspace: Workspace, *, available_bytes: int | None = None) -> int | None:
    """Return how much a split may take of the aggregate, None if that is not known.

    The free part that the site keeps is left out. Without `available_bytes` it is as
    last measured.
    """
    space = find_space(workspace.site, aggregate=workspace.aggregate)
    if space is None:
        return available_bytes
    if available_bytes is not None:
        space.available_bytes = available_bytes
    return space.room_bytes
