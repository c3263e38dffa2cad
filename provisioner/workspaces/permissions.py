"""Who may do what: one place for pages and API."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.workspaces.errors import NotAllowed
from provisioner.workspaces.models import Workspace


def can_see_workspace(user: User, workspace: Workspace) -> bool:
    return user.is_administrator or workspace.owner_id == user.pk


def can_change_workspace(user: User, workspace: Workspace) -> bool:
    return user.is_administrator or workspace.owner_id == user.pk


def can_manage_templates(user: User) -> bool:
    return user.is_administrator


def require(allowed: bool) -> None:
    """Raise NotAllowed unless it is."""
    if not allowed:
        raise NotAllowed
