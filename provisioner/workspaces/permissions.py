"""Permissions on a workspace, from the table in accounts."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.accounts.permissions import Verb, may, roles_of, roles_towards
from provisioner.workspaces.models import Workspace


def can_change_workspace(user: User, workspace: Workspace) -> bool:
    """Return whether the person may. Nobody may change a pool member."""
    is_pooled = workspace.is_pooled
    roles = roles_of(user) if is_pooled else roles_towards(user, workspace)
    return may(user, Verb.CHANGE_WORKSPACE, roles)
