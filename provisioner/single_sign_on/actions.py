"""Read the provider's claims, and sign in the person they describe."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from provisioner.accounts.models import User
from provisioner.identities import actions
from provisioner.identities.people import Person, Rules
from provisioner.lib.storable import shown_json

Claims = dict[str, Any]


def account_sign_in(claims: Claims) -> User:
    """Return the account of a person, made at their first sign-in.

    Raises: SignInRefused, as identities/actions.py says.
    """
    rules = Rules(
        provider=settings.OIDC_NAME,
        source=f"the claim “{settings.OIDC_USERNAME_CLAIM}”",
        setting="OIDC_ADOPTS_ACCOUNTS",
        administrators=frozenset(settings.OIDC_ADMINISTRATORS),
        lowest_uid=settings.OIDC_LOWEST_UID,
        adopts_accounts=settings.OIDC_ADOPTS_ACCOUNTS,
    )
    return actions.account_sign_in(person_of(claims), rules=rules)


def person_of(claims: Claims) -> Person:
    """Return the person whom claims describe; values of another type are ignored."""
    claims = shown_json(claims)
    return Person(
        issuer=settings.OIDC_ISSUER,
        subject=claims["sub"],
        name=_name(claims),
        email=_verified_address(claims),
        first_name=str(claims.get("given_name") or ""),
        last_name=str(claims.get("family_name") or ""),
        groups=_groups(claims),
        ids=_ids(claims),
    )


def _name(claims: Claims) -> str:
    name = str(claims.get(settings.OIDC_USERNAME_CLAIM) or "")
    domain = settings.OIDC_USERNAME_DOMAIN
    return name.removesuffix(f"@{domain}") if domain else name


def _verified_address(claims: Claims) -> str:
    # Some providers send "true" and "false" as texts.
    is_verified = claims.get("email_verified", True) in (True, "true")
    email = claims.get("email")
    return email if is_verified and isinstance(email, str) else ""


def _groups(claims: Claims) -> frozenset[str]:
    groups = claims.get(settings.OIDC_GROUPS_CLAIM)
    if not isinstance(groups, list):
        return frozenset()
    named = (group for group in groups if isinstance(group, str))
    return frozenset(group.removeprefix("/") for group in named)


def _ids(claims: Claims) -> tuple[int, int] | None:
    said = [
        str(claims.get(claim, ""))
        for claim in (settings.OIDC_UID_CLAIM, settings.OIDC_GID_CLAIM)
    ]
    # No uid has more than ten digits: 2^32 - 2 is the highest.
    if not all(text.isdecimal() and text.isascii() and len(text) < 11 for text in said):
        return None
    return int(said[0]), int(said[1])
