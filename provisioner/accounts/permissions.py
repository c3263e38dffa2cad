"""Who may do what: one table for pages and API, and the one reader of it.

Everybody who has signed in plays a part towards everything, and more parts towards
some workspaces. Something is allowed if one of the parts allows it.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser

from provisioner.accounts.models import User
from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Template
from provisioner.lib.refusals import NotAllowed, OutOfScope
from provisioner.notify.models import Webhook
from provisioner.workspaces.models import Share, Workspace


class Role(StrEnum):
    """A part that somebody plays.

    A machine is a service account, such as CI with its token: towards what is its own
    it is the owner, towards everything else a stranger by another name.
    """

    OWNER = "owner"
    TEAM_MATE = "team mate"
    READER = "somebody it is shared with"
    ADMINISTRATOR = "administrator"
    MACHINE = "machine"
    STRANGER = "stranger"
    NOBODY = "nobody"


class Verb(StrEnum):
    """What can be done; workspaces are always particular ones."""

    KNOCK = "ask whether it lives, sign in, read the schema"
    VISIT = "see templates, their builds, and what is one's own"
    GET_WORKSPACE = "get a workspace, and tokens to do so"
    SEE_WORKSPACE = "see a workspace: where it is, what it equals, what happened"
    SEE_BISECTION = "see a bisection and its trials"
    CHANGE_WORKSPACE = "extend, share, retire, restore, purge it; decide a trial"
    CHANGE_WEBHOOK = "see and change a webhook, and what was sent to it"
    ADMINISTER = "define templates, see everybody's workspaces, limits and policies"


_SIGNED_IN = frozenset(
    {
        Role.OWNER,
        Role.TEAM_MATE,
        Role.READER,
        Role.ADMINISTRATOR,
        Role.MACHINE,
        Role.STRANGER,
    }
)
_MATES = frozenset({Role.OWNER, Role.TEAM_MATE, Role.ADMINISTRATOR})

PERMISSIONS: dict[Verb, frozenset[Role]] = {
    Verb.KNOCK: _SIGNED_IN | {Role.NOBODY},
    Verb.VISIT: _SIGNED_IN,
    Verb.GET_WORKSPACE: _SIGNED_IN,
    Verb.SEE_WORKSPACE: _MATES | {Role.READER},
    Verb.SEE_BISECTION: _MATES,
    Verb.CHANGE_WORKSPACE: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.CHANGE_WEBHOOK: frozenset({Role.OWNER, Role.ADMINISTRATOR}),
    Verb.ADMINISTER: frozenset({Role.ADMINISTRATOR}),
}


def roles_of(
    user: User | AnonymousUser, workspace: Workspace | Bisection | None = None
) -> set[Role]:
    """Return the parts that somebody plays, towards a workspace where one is given.

    A bisection is to its owner, and to others, what its workspaces are.
    """
    if not isinstance(user, User) or not user.is_active:
        return {Role.NOBODY}
    roles = {Role.MACHINE if user.is_service else Role.STRANGER}
    if user.is_administrator:
        roles.add(Role.ADMINISTRATOR)
    if workspace is None:
        return roles
    if isinstance(workspace, Workspace) and workspace.is_pooled:
        return roles  # what lies in a warm pool is nobody's yet
    if user.scope is not None:
        # A scoped token plays a part towards what it got itself, and nothing else.
        its_own = workspace.token_id == user.scope.pk
        return roles | {Role.OWNER} if its_own else roles
    if workspace.owner_id == user.pk:
        roles.add(Role.OWNER)
    elif user.team_id is not None and workspace.owner.team_id == user.team_id:
        roles.add(Role.TEAM_MATE)
    elif isinstance(workspace, Workspace) and _is_reader(user, workspace):
        roles.add(Role.READER)
    return roles


def _is_reader(user: User, workspace: Workspace) -> bool:
    return Share.objects.reaching(user).filter(workspace=workspace).exists()


def may(
    user: User | AnonymousUser,
    verb: Verb,
    workspace: Workspace | Bisection | None = None,
) -> bool:
    """Say whether the table allows it."""
    return bool(PERMISSIONS[verb] & roles_of(user, workspace))


def can_see_workspace(user: User, workspace: Workspace) -> bool:
    return may(user, Verb.SEE_WORKSPACE, workspace)


def can_change_workspace(user: User, workspace: Workspace) -> bool:
    return may(user, Verb.CHANGE_WORKSPACE, workspace)


def can_change_bisection(user: User, bisection: Bisection) -> bool:
    return may(user, Verb.CHANGE_WORKSPACE, bisection)


def can_be_told(user: User) -> bool:
    """Say whether mails and webhooks are for who asks: for no scoped token."""
    return may(user, Verb.VISIT) and user.scope is None


def can_change_webhook(user: User, webhook: Webhook) -> bool:
    roles = roles_of(user)
    if webhook.owner_id == user.pk and can_be_told(user):
        roles = roles | {Role.OWNER}
    return bool(PERMISSIONS[Verb.CHANGE_WEBHOOK] & roles)


def can_manage_templates(user: User) -> bool:
    return may(user, Verb.ADMINISTER)


def can_administer(user: User) -> bool:
    return may(user, Verb.ADMINISTER)


def require_in_scope(user: User, *, template: Template, purpose: str) -> None:
    """Refuse what the token that somebody asks with is not for.

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
    """Return how far a lease may reach by the token somebody asks with; None: any."""
    scope = user.scope
    if scope is None or scope.max_lease_seconds is None:
        return None
    return now + dt.timedelta(seconds=scope.max_lease_seconds)


def require(allowed: bool) -> None:
    """Raise NotAllowed unless it is."""
    if not allowed:
        raise NotAllowed
