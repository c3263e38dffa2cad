"""Find or make the account of a person, and keep it in line with what is known."""

from __future__ import annotations

import pwd

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from provisioner.accounts.models import Team, User
from provisioner.accounts.names import perforce_user_validator
from provisioner.accounts.refusals import SignInRefused
from provisioner.accounts.sessions import sessions_end
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.accounts.tokens import live_tokens, token_revoke
from provisioner.audit_log.actions import record_event
from provisioner.identities.models import Identity
from provisioner.identities.people import Person, Rules
from provisioner.identities.refusals import (
    AccountClosed,
    NameBelongsToAnother,
    NameMissing,
    UidBelongsToAnother,
)
from provisioner.lib import clocks

# What PositiveIntegerField holds.
HIGHEST_UID = 2**31 - 1


def account_sign_in(person: Person, *, rules: Rules) -> User:
    """Return the account of a person, made at their first sign-in.

    Each sign-in brings mail address, team and role in line. A role whose group is not
    among the person's is taken away; superusers keep theirs. A uid and gid are given
    once: what the file server has stored stays somebody's. An account that the
    directory's word closed opens again, as it vouches for the person now.

    Raises: AccountClosed, NameMissing, NameBelongsToAnother, UidBelongsToAnother;
        SignInRefused if the person signs in a first time elsewhere at this moment.
    """
    # The host's directory may be slow to answer: no row is locked meanwhile.
    ids = person.ids or _ids_on_this_host(person, rules=rules)
    try:
        with transaction.atomic():
            account = _known(person, rules=rules) or _made(person, rules=rules)
            if not account.is_active:
                raise AccountClosed(name=account.username)
            follow(account, person, rules=rules)
            if account.uid is None and ids is not None:
                _give_uid(account, ids, rules=rules)
            account.save()
    except IntegrityError as error:
        raise SignInRefused from error
    return account


def follow(account: User, person: Person, *, rules: Rules) -> None:
    """Set mail address, name, role and team of an account; the caller saves it."""
    if is_address(person.email):
        account.email = person.email
    for field in ("first_name", "last_name"):
        words = str(getattr(person, field)).split()
        setattr(account, field, " ".join(words)[:150])
    if rules.administrators and not account.is_superuser:
        account.is_staff = bool(person.groups & rules.administrators)
    team = Team.objects.filter(name__in=person.groups).order_by("name").first()
    if team is not None:
        account.team = team


def account_end(account: User, *, reason: str) -> int:
    """Close a locked account, end its sessions and revoke its tokens.

    Its workspaces stay until their leases end. Return how many tokens there were.
    """
    account.is_active = False
    account.save(update_fields=["is_active"])
    Identity.objects.filter(account=account).update(closed_at=clocks.database_now())
    sessions_end(account)
    tokens = list(live_tokens().filter(user=account))
    for token in tokens:
        token_revoke(token)
    record_event(account, kind="account_closed_by_directory", message=reason)
    return len(tokens)


def is_address(email: str) -> bool:
    """Return whether a text can be an account's mail address."""
    try:
        User._meta.get_field("email").run_validators(email)
    except ValidationError:
        return False
    return bool(email)


def _known(person: Person, *, rules: Rules) -> User | None:
    """Return the account of a person who has signed in before, and note that."""
    identity = (
        Identity.objects.select_for_update(of=("self", "account"), no_key=True)
        .select_related("account")
        .filter(issuer=person.issuer, subject=person.subject)
        .first()
    )
    if identity is None:
        return None
    identity.vouched_at = clocks.database_now()
    was_closed, identity.closed_at = identity.closed_at is not None, None
    identity.save(update_fields=["vouched_at", "closed_at"])
    if was_closed:
        _reopen(identity, rules=rules)
    return identity.account


def _reopen(identity: Identity, *, rules: Rules) -> None:
    identity.account.is_active = True
    record_event(
        identity.account,
        kind="account_reopened_by_directory",
        message=f"Reopened: the person has signed in with {rules.provider} again.",
    )


def _made(person: Person, *, rules: Rules) -> User:
    """Return a new account, or the one of that name that may be adopted."""
    name = account_name(person, rules=rules)
    if name.lower() == SYSTEM_USERNAME:
        raise NameBelongsToAnother(name=name, setting=rules.setting)
    accounts = User.objects.select_for_update(no_key=True)
    account = accounts.filter(username__iexact=name).first()
    if account is None:
        account = User(username=name)
        account.set_unusable_password()
        account.save()
    elif not (rules.adopts_accounts and can_be_adopted(account)):
        raise NameBelongsToAnother(name=account.username, setting=rules.setting)
    elif rules.checks_passwords:
        account.set_unusable_password()
    Identity.objects.create(
        account=account, issuer=person.issuer, subject=person.subject
    )
    return account


def can_be_adopted(account: User) -> bool:
    """Return whether an account may become that of a person of its name."""
    return (
        not account.is_superuser
        and not account.is_service
        and not Identity.objects.filter(account=account).exists()
    )


def account_name(person: Person, *, rules: Rules) -> str:
    """Return the name of a person's new account.

    Raises: NameMissing.
    """
    name = User.normalize_username(person.name)
    try:
        perforce_user_validator(name)
        User._meta.get_field("username").run_validators(name)
    except ValidationError as error:
        raise NameMissing(provider=rules.provider, source=rules.source) from error
    return name


def _give_uid(account: User, ids: tuple[int, int], *, rules: Rules) -> None:
    """Set uid and gid, unless they are the system's or no uids."""
    if min(ids) < rules.lowest_uid or max(ids) > HIGHEST_UID:
        return
    other = User.objects.filter(uid=ids[0]).exclude(pk=account.pk).first()
    if other is not None:
        raise UidBelongsToAnother(
            uid=ids[0], provider=rules.provider, other=other.username
        )
    account.uid, account.gid = ids


def _ids_on_this_host(person: Person, *, rules: Rules) -> tuple[int, int] | None:
    """Return what the directory of this host has for the person's name."""
    try:
        entry = pwd.getpwnam(account_name(person, rules=rules))
    except (KeyError, NameMissing):
        return None
    return entry.pw_uid, entry.pw_gid
