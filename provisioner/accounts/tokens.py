"""API tokens: made, listed and revoked by the person they speak for."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone

from provisioner.accounts.models import ApiToken, User


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return a person's tokens that still open the door."""
    return ApiToken.objects.filter(user=user, expiry__gt=timezone.now())


def token_create(*, by: User, name: str = "") -> tuple[ApiToken, str]:
    """Make a token that lives API_TOKEN_DAYS; return it and its secret.

    The secret is kept as a hash alone, so this is the one time it can be shown.
    """
    token, secret = ApiToken.objects.create(user=by, name=name)
    return token, secret


def token_revoke(token: ApiToken) -> None:
    """Make the token worthless from the next request on."""
    token.delete()
