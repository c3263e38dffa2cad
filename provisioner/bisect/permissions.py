"""Permissions on a bisection."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.accounts.permissions import Verb, may, roles_towards
from provisioner.bisect.models import Bisection


def can_change_bisection(user: User, bisection: Bisection) -> bool:
    """Return whether the person may change it, by the rules for workspaces."""
    return may(user, Verb.CHANGE_WORKSPACE, roles_towards(user, bisection))
