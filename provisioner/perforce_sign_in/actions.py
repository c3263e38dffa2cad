"""Sign in by a Perforce password or ticket, which is kept nowhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog
from django.core.exceptions import ValidationError

from provisioner.accounts.models import User
from provisioner.accounts.names import perforce_user_validator
from provisioner.gateways import registry
from provisioner.gateways.errors import (
    AuthFailed,
    GatewayError,
    PermanentGatewayError,
    TransientGatewayError,
)
from provisioner.gateways.perforce.errors import (
    NO_ACCESS,
    PASSWORD_IS_DUE,
    SECOND_FACTOR,
    WRONG_PASSWORD,
)
from provisioner.gateways.perforce.types import PerforcePerson
from provisioner.identities.actions import account_sign_in
from provisioner.identities.places import place_to_ask
from provisioner.identities.queries import (
    is_known,
    may_be_asked_for,
    perforce_issuer,
)
from provisioner.identities.refusals import NameBelongsToAnother
from provisioner.perforce_sign_in.people import (
    ANSWERS_WITHIN_SECONDS,
    SETTING,
    as_person,
    perforce_rules,
    sign_in_server,
)
from provisioner.perforce_sign_in.queries import accounts_of
from provisioner.perforce_sign_in.refusals import (
    NoAccessThere,
    PasswordIsDue,
    PerforceRefuses,
    PerforceSilent,
    SecondFactorMissing,
)
from provisioner.sites.models import PerforceServer

_REFUSALS = (
    (PASSWORD_IS_DUE, PasswordIsDue),
    (SECOND_FACTOR, SecondFactorMissing),
    (NO_ACCESS, NoAccessThere),
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Proven:
    """Somebody who has proven to be a user, and how the server compares names."""

    person: PerforcePerson
    groups: frozenset[str]
    ignores_case: bool


def perforce_sign_in(*, name: str, secret: str) -> User | None:
    """Return the account of whoever has this name and password or ticket in Perforce.

    None if they are wrong, and for names that are not asked for there: malformed ones,
    and those of accounts whose passwords are checked elsewhere.

    Raises: SignInRefused.
    """
    server = sign_in_server()
    may_ask = may_be_asked_for(name, issuer=perforce_issuer())
    if server is None or not secret or not may_ask:
        return None
    with place_to_ask():
        try:
            proven = find_proven(server, user=name, secret=secret)
        except TransientGatewayError as error:
            raise PerforceSilent from error
        except GatewayError as error:
            _refuse(error)
            return None
    if proven is None:
        return None
    person = as_person(
        proven.person, groups=proven.groups, name=_name_of_account(proven)
    )
    return account_sign_in(person, rules=perforce_rules())


def find_proven(server: PerforceServer, *, user: str, secret: str) -> Proven | None:
    """Return the user if password or ticket are theirs; None if there is no such user.

    Whether there is one is asked as ourselves: a server may create users who ask.

    Raises: GatewayError; AuthFailed if the password or ticket is not theirs, or not
        enough.
    """
    if not _is_name(user):
        return None
    account = registry.perforce_account(server)
    gateway = registry.hasty_perforce(server, seconds=ANSWERS_WITHIN_SECONDS)
    try:
        found = gateway.people.find([user]).get(user)
        ignores_case = not gateway.get_info().is_case_sensitive
    except AuthFailed as error:
        raise PermanentGatewayError(
            error.sentence, system=error.system, operation=error.operation
        ) from error
    if found is None or found.user == account.user:
        return None
    theirs = replace(
        account,
        user=found.user,
        password=secret,
        timeout_seconds=ANSWERS_WITHIN_SECONDS,
    )
    groups = registry.perforce_as(theirs).people.prove()
    return Proven(person=found, groups=groups, ignores_case=ignores_case)


def _refuse(error: GatewayError) -> None:
    """Raise what a person can do something about; return for a wrong password.

    Raises: SignInRefused.
    """
    number = int(error.remote_code) if error.remote_code.isdecimal() else 0
    if isinstance(error, AuthFailed) and (not number or number in WRONG_PASSWORD):
        return
    for numbers, refusal in _REFUSALS:
        if number in numbers:
            raise refusal from error
    log.error("perforce_sign_in_failed", **error.log_context())
    raise PerforceRefuses from error


def _name_of_account(proven: Proven) -> str:
    """Return the name of the account with this Perforce user; "" if there is none.

    Raises: NameBelongsToAnother (the account of that name has another Perforce user, or
        several have this one).
    """
    user = proven.person.user
    if is_known(issuer=perforce_issuer(), subject=user):
        return ""
    found = list(accounts_of(user, ignores_case=proven.ignores_case)[:2])
    if len(found) == 1:
        return found[0].username
    if found or User.objects.filter(username__iexact=user).exists():
        raise NameBelongsToAnother(name=user, setting=SETTING)
    return ""


def _is_name(user: str) -> bool:
    """Return whether this can be one user's name: an option or a wildcard is none."""
    try:
        perforce_user_validator(user)
    except ValidationError:
        return False
    return True
