"""Who may do what: one table for pages and API, and the functions that read it.

Everybody who has signed in has a role towards everything, and more roles towards some
workspaces. Something is allowed if one of the roles allows it.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import Any, Protocol

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from provisioner.accounts.models import User
from provisioner.accounts.refusals import OutOfScope
from provisioner.lib.refusals import NotAllowed


class Owned(Protocol):
    """A row with an owner, and perhaps a token."""

    token_id: Any
    owner_id: int


class Named(Protocol):
    """A template, as far as scopes are concerned."""

    pk: Any
    name: str


class LookedAfter(Protocol):
    """A template, as far as its owner is concerned."""

    owner_id: int


class Role(StrEnum):
    """A role of a person.

    A machine is a service account, such as CI with its token: an owner towards its own
    rows, and towards all others a stranger under another name.
    """

    OWNER = "owner"
    TEAM_MATE = "team mate"
    READER = "somebody it is shared with"
    CLONER = "somebody it is shared with who may clone it"
    ADMINISTRATOR = "administrator"
    MACHINE = "machine"
    STRANGER = "stranger"
    NOBODY = "nobody"


class Verb(StrEnum):
    """An action that needs permission. Those on workspaces are about one workspace."""

    VISIT = "see templates, their builds, and what is one's own"
    SEE_WORKSPACE = "see a workspace: where it is, what it contains, what happened"
    SEE_BISECTION = "see a bisection and its steps"
    CHANGE_WORKSPACE = "extend, share, retire, restore, purge it; give a verdict"
    CLONE_WORKSPACE = "clone a workspace as it is now, for oneself"
    CHANGE_TEMPLATE = "rename, archive, hand over a template; say which snapshot counts"
    CHANGE_WEBHOOK = "see and change a webhook, and what was sent to it"
    CHANGE_SANDBOX = "see, extend, retry and retire a sandbox"
    ADMINISTER = "define templates, see everybody's workspaces, limits and policies"


_SIGNED_IN = frozenset(
    {
        Role.OWNER,
        Role.TEAM_MATE,
        Role.READER,
        Role.CLONER,
        Role.ADMINISTRATOR,
        Role.MACHINE,
        Role.STRANGER,
    }
)
_MATES = frozenset({Role.OWNER, Role.TEAM_MATE, Role.ADMINISTRATOR})

PERMISSIONS: dict[Verb, frozenset[Role]] = {
    Verb.VISIT: _SIGNED_IN,
    Verb.SEE_WORKSPACE: _MATES | {Role.READER, Role.CLONER},
    Verb.SEE_BISECTION: _MATES,
    Verb.CHANGE_WORKSPACE: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.CLONE_WORKSPACE: frozenset({Role.OWNER, Role.ADMINISTRATOR, Role.CLONER}),
    Verb.CHANGE_TEMPLATE: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.CHANGE_WEBHOOK: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.CHANGE_SANDBOX: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.ADMINISTER: frozenset({Role.ADMINISTRATOR}),
}


def roles_of(user: User | AnonymousUser) -> set[Role]:
    """Return a person's roles towards everything."""
    if not isinstance(user, User) or not user.is_active:
        return {Role.NOBODY}
    roles = {Role.MACHINE if user.is_service else Role.STRANGER}
    if user.is_administrator:
        roles.add(Role.ADMINISTRATOR)
    return roles


def roles_towards(user: User | AnonymousUser, row: Owned) -> set[Role]:
    """Return the roles by which a person may change a row with an owner.

    A query says who else may see it: see `own_or_of_team`.
    """
    roles = roles_of(user)
    if not isinstance(user, User) or Role.NOBODY in roles:
        return roles
    # A scoped token plays a part towards what it got itself, and nothing else.
    scope = user.scope
    is_own = row.token_id == scope.pk if scope else row.owner_id == user.pk
    return roles | {Role.OWNER} if is_own else roles


def own_or_of_team(user: User) -> Q:
    """Return the condition for rows owned by a person or their team mates."""
    own = Q(owner=user)
    if user.scope is not None:
        return own & Q(token=user.scope)
    if user.team_id is None:
        return own
    return Q(owner__in=team_members(user))


def team_members(user: User) -> QuerySet[User, Any]:
    """Return the ids of a team as a subquery, as a join would read every row."""
    return User.objects.filter(team=user.team_id).order_by().values("pk")


def may(user: User | AnonymousUser, verb: Verb, roles: set[Role] | None = None) -> bool:
    """Return whether the table allows it; `roles` are those towards a row."""
    return bool(PERMISSIONS[verb] & (roles_of(user) if roles is None else roles))


def can_be_told(user: User) -> bool:
    """Return whether mails, webhooks and pins are for them: not for scoped tokens."""
    return may(user, Verb.VISIT) and user.scope is None


def can_manage_templates(user: User) -> bool:
    return may(user, Verb.ADMINISTER)


def can_change_template(user: User, template: LookedAfter) -> bool:
    """Return whether they own the template, which excludes its definition."""
    roles = roles_of(user)
    if template.owner_id == user.pk and user.scope is None and user.is_active:
        roles.add(Role.OWNER)
    return may(user, Verb.CHANGE_TEMPLATE, roles)


def can_administer(user: User) -> bool:
    return may(user, Verb.ADMINISTER)


def can_read_mounts(user: User) -> bool:
    """Return whether a host may look up everybody's mounts with the current token.

    An administrator makes such a token; it ends with their rights.
    """
    is_for_it = user.scope is not None and user.scope.reads_mounts
    return is_for_it and user.is_active and user.is_staff


def require_in_scope(user: User, *, template: Named, purpose: str) -> None:
    """Refuse what is outside the scope of the current token.

    Raises: OutOfScope.
    """
    scope = user.scope
    if scope is None:
        return
    if scope.template_ids is not None and template.pk not in scope.template_ids:
        raise OutOfScope(what=f"the template “{template.name}”")
    if scope.purposes is not None and purpose not in scope.purposes:
        raise OutOfScope(what=f"the purpose “{purpose}”")


def latest_lease(user: User, now: dt.datetime) -> dt.datetime | None:
    """Return the latest end of a lease for the current token; None: no limit."""
    scope = user.scope
    if scope is None or scope.max_lease_seconds is None:
        return None
    return now + dt.timedelta(seconds=scope.max_lease_seconds)


def require(allowed: bool) -> None:
    """Raise NotAllowed unless it is allowed."""
    if not allowed:
        raise NotAllowed
