"""Where each account's password is checked."""

from __future__ import annotations

from django.conf import settings
from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.identities.models import Identity

PERFORCE = "Perforce"
LONGEST_NAME = 150


def people_come_from_elsewhere() -> bool:
    """Return whether a provider, a directory or Perforce signs people in."""
    return bool(settings.OIDC_ISSUER or password_keepers())


def perforce_issuer() -> str:
    """Name the Perforce server that signs people in, in identities."""
    return f"perforce:{settings.P4_SIGN_IN_SERVER}"


def password_keepers() -> dict[str, str]:
    """Return who checks passwords elsewhere: names for pages, by issuer."""
    keepers = {}
    if settings.DIRECTORY is not None:
        keepers[settings.DIRECTORY.issuer] = settings.DIRECTORY.name
    if settings.P4_SIGN_IN_SERVER:
        keepers[perforce_issuer()] = PERFORCE
    return keepers


def password_keeper(account: User) -> str:
    """Return who checks this account's password, "" if it is kept here."""
    keepers = password_keepers()
    if not keepers:
        return ""
    identity = Identity.objects.filter(account=account, issuer__in=keepers).first()
    return keepers[identity.issuer] if identity is not None else ""


def signs_in_by(account: User) -> str:
    """Return in words how somebody signs in to this account, for administrators."""
    identity = Identity.objects.filter(account=account).first()
    if identity is None:
        has_one = account.has_usable_password()
        return "password kept here" if has_one else "no password: nobody can"
    names = password_keepers()
    if settings.OIDC_ISSUER:
        names[settings.OIDC_ISSUER] = settings.OIDC_NAME
    name = names.get(identity.issuer)
    if name is None:
        return f"{identity}, which no setting names: nobody can"
    return f"{name}, as {identity.subject}"


def may_be_asked_for(name: str, *, issuer: str) -> bool:
    """Return whether a name with its password may be sent to whom `issuer` names.

    Malformed names may not, nor those of local administrators and machines, nor
    passwords that somebody else checks.
    """
    is_plain = name.isprintable() and not any(letter.isspace() for letter in name)
    if not name or len(name) > LONGEST_NAME or not is_plain:
        return False
    if name != User.normalize_username(name):
        return False
    account = User.objects.filter(username__iexact=name).first()
    if account is None:
        return True
    identity = Identity.objects.filter(
        account=account, issuer__in=password_keepers()
    ).first()
    if identity is not None:
        return identity.issuer == issuer
    return not (account.is_superuser or account.is_service)


def is_known(*, issuer: str, subject: str) -> bool:
    """Return whether somebody there has an account here."""
    return Identity.objects.filter(issuer=issuer, subject=subject).exists()


def is_break_glass(account: User) -> bool:
    """Return whether an account gets in while nothing else works.

    It is a superuser whom no provider and no directory vouches for.
    """
    return account.is_superuser and not hasattr(account, "identity")


def break_glass_accounts() -> QuerySet[User]:
    """Return the active ones; whether each has a password is for the caller to
    check."""
    return User.objects.filter(
        is_superuser=True, is_active=True, is_service=False, identity=None
    ).order_by("username")
