"""What somebody may do with a workspace: the table of accounts, read towards it."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.permissions import Role, Verb, may
from provisioner.workspaces.models import Share, Workspace


def roles_towards(user: User | AnonymousUser, workspace: Workspace) -> set[Role]:
    """Return the parts that somebody plays towards a workspace.

    Members of a warm pool are nobody's yet.
    """
    if workspace.is_pooled:
        return permissions.roles_of(user)
    roles = permissions.roles_towards(user, workspace)
    is_known = roles & {Role.OWNER, Role.TEAM_MATE, Role.NOBODY}
    if is_known or not isinstance(user, User) or user.scope is not None:
        return roles
    if Share.objects.reaching(user).filter(workspace=workspace).exists():
        roles.add(Role.READER)
    return roles


def can_see_workspace(user: User, workspace: Workspace) -> bool:
    return may(user, Verb.SEE_WORKSPACE, roles_towards(user, workspace))


def can_change_workspace(user: User, workspace: Workspace) -> bool:
    return may(user, Verb.CHANGE_WORKSPACE, roles_towards(user, workspace))
