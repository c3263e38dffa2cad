"""Whose password is checked where."""

from __future__ import annotations

from django.conf import settings
from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.identities.models import Identity


def password_is_elsewhere(account: User) -> bool:
    """Return whether the directory checks this account's password."""
    directory = settings.DIRECTORY
    return directory is not None and known_there(account, issuer=directory.issuer)


def known_there(account: User, *, issuer: str) -> bool:
    return Identity.objects.filter(account=account, issuer=issuer).exists()


def is_break_glass(account: User) -> bool:
    """Return whether an account gets in while nothing else works.

    It is a superuser whom no provider and no directory vouches for.
    """
    return account.is_superuser and not hasattr(account, "identity")


def break_glass_accounts() -> QuerySet[User]:
    """Return active ones; whether they have a password has to be asked of each."""
    return User.objects.filter(
        is_superuser=True, is_active=True, is_service=False, identity=None
    ).order_by("username")
