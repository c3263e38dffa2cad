"""Find or make the account of somebody who has signed in at the provider."""

from __future__ import annotations

import pwd
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from provisioner.accounts.models import Team, User
from provisioner.accounts.names import perforce_user_validator
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.lib.storable import shown_json
from provisioner.single_sign_on.models import Identity
from provisioner.single_sign_on.refusals import (
    AccountClosed,
    NameBelongsToAnother,
    NameMissing,
    SignInRefused,
    UidBelongsToAnother,
)

# What PositiveIntegerField holds.
HIGHEST_UID = 2**31 - 1

Claims = dict[str, Any]


def account_sign_in(claims: Claims) -> User:
    """Return the account of a person, made at their first sign-in.

    Each sign-in brings mail address, team and role in line with the provider. A role
    whose group is not among the claims is taken away; superusers keep theirs, so that
    somebody can always get in. A uid and gid are given once: what the file server has
    stored stays somebody's.

    Raises: AccountClosed, NameMissing, NameBelongsToAnother, UidBelongsToAnother;
        SignInRefused if the person signs in a first time elsewhere at this moment.
    """
    claims = shown_json(claims)
    # A directory may be slow to answer: no row is locked meanwhile.
    ids = _ids_claimed(claims) or _ids_on_this_host(claims)
    try:
        with transaction.atomic():
            account = _known(claims) or _made(claims)
            if not account.is_active:
                raise AccountClosed(name=account.username)
            _follow(account, claims)
            if account.uid is None and ids is not None:
                _give_uid(account, ids)
            account.save()
    except IntegrityError as error:
        raise SignInRefused from error
    return account


def _known(claims: Claims) -> User | None:
    identity = (
        Identity.objects.select_for_update(of=("self", "account"), no_key=True)
        .select_related("account")
        .filter(issuer=settings.OIDC_ISSUER, subject=claims["sub"])
        .first()
    )
    return identity.account if identity is not None else None


def _made(claims: Claims) -> User:
    """Return a new account, or the one of that name that may be adopted."""
    name = _name(claims)
    if name.lower() == SYSTEM_USERNAME:
        raise NameBelongsToAnother(name=name)
    accounts = User.objects.select_for_update(no_key=True)
    account = accounts.filter(username__iexact=name).first()
    if account is None:
        account = User(username=name)
        account.set_unusable_password()
        account.save()
    elif not _may_adopt(account):
        raise NameBelongsToAnother(name=account.username)
    Identity.objects.create(
        account=account, issuer=settings.OIDC_ISSUER, subject=claims["sub"]
    )
    return account


def _may_adopt(account: User) -> bool:
    return (
        settings.OIDC_ADOPTS_ACCOUNTS
        and not account.is_superuser
        and not account.is_service
        and not Identity.objects.filter(account=account).exists()
    )


def _name(claims: Claims) -> str:
    claim = settings.OIDC_USERNAME_CLAIM
    name = User.normalize_username(str(claims.get(claim) or ""))
    domain = settings.OIDC_USERNAME_DOMAIN
    if domain:
        name = name.removesuffix(f"@{domain}")
    try:
        perforce_user_validator(name)
        User._meta.get_field("username").run_validators(name)
    except ValidationError as error:
        raise NameMissing(provider=settings.OIDC_NAME, claim=claim) from error
    return name


def _follow(account: User, claims: Claims) -> None:
    # Some providers send "true" and "false" as texts.
    is_verified = claims.get("email_verified", True) in (True, "true")
    if is_verified and _is_address(claims.get("email")):
        account.email = claims["email"]
    for field, claim in (("first_name", "given_name"), ("last_name", "family_name")):
        words = str(claims.get(claim) or "").split()
        setattr(account, field, " ".join(words)[:150])
    groups = _groups(claims)
    if settings.OIDC_ADMINISTRATORS and not account.is_superuser:
        account.is_staff = bool(groups & {*settings.OIDC_ADMINISTRATORS})
    team = Team.objects.filter(name__in=groups).order_by("name").first()
    if team is not None:
        account.team = team


def _is_address(email: object) -> bool:
    if not isinstance(email, str):
        return False
    try:
        User._meta.get_field("email").run_validators(email)
    except ValidationError:
        return False
    return True


def _groups(claims: Claims) -> set[str]:
    groups = claims.get(settings.OIDC_GROUPS_CLAIM)
    if not isinstance(groups, list):
        return set()
    return {group.removeprefix("/") for group in groups if isinstance(group, str)}


def _give_uid(account: User, ids: tuple[int, int]) -> None:
    """Set uid and gid, unless they are the system's or no uids."""
    if min(ids) < settings.OIDC_LOWEST_UID or max(ids) > HIGHEST_UID:
        return
    other = User.objects.filter(uid=ids[0]).exclude(pk=account.pk).first()
    if other is not None:
        raise UidBelongsToAnother(
            uid=ids[0], provider=settings.OIDC_NAME, other=other.username
        )
    account.uid, account.gid = ids


def _ids_claimed(claims: Claims) -> tuple[int, int] | None:
    said = [
        str(claims.get(claim, ""))
        for claim in (settings.OIDC_UID_CLAIM, settings.OIDC_GID_CLAIM)
    ]
    # No uid has more than ten digits: 2^32 - 2 is the highest.
    if not all(text.isdecimal() and text.isascii() and len(text) < 11 for text in said):
        return None
    return int(said[0]), int(said[1])


def _ids_on_this_host(claims: Claims) -> tuple[int, int] | None:
    """Return what the directory of this host has for the person's name."""
    try:
        entry = pwd.getpwnam(_name(claims))
    except (KeyError, NameMissing):
        return None
    return entry.pw_uid, entry.pw_gid
