"""Whose Perforce user is whose account."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from provisioner.accounts.models import User


def accounts_of(p4_user: str, *, ignores_case: bool) -> QuerySet[User]:
    """Return the accounts with this Perforce user."""
    how = "iexact" if ignores_case else "exact"
    named = Q(**{f"p4_user__{how}": p4_user})
    named |= Q(**{"p4_user": "", f"username__{how}": p4_user})
    return User.objects.filter(named)
