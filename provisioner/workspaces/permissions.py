"""Permissions on a workspace, from the table in accounts."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.accounts.permissions import Role, Verb, may, roles_of, roles_towards
from provisioner.workspaces.models import Share, Workspace


def can_change_workspace(user: User, workspace: Workspace) -> bool:
    """Return whether the person may. Nobody may change a pool member."""
    is_pooled = workspace.is_pooled
    roles = roles_of(user) if is_pooled else roles_towards(user, workspace)
    return may(user, Verb.CHANGE_WORKSPACE, roles)


def can_clone_workspace(user: User, workspace: Workspace) -> bool:
    """Return whether the person may clone it for themselves, in at most one query.

    Who may change a workspace may; so may whom it was shared with for this.
    """
    if can_change_workspace(user, workspace):
        return True
    shares = Share.objects.reaching(user).filter(workspace=workspace, may_clone=True)
    roles = roles_of(user)
    if Role.NOBODY not in roles and shares.exists():
        roles.add(Role.CLONER)
    return may(user, Verb.CLONE_WORKSPACE, roles)
