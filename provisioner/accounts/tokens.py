"""API tokens: create, list and revoke them."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from provisioner.accounts.models import ApiToken, User
from provisioner.lib import clocks

LONGEST_DAYS = 366


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return a person's active tokens, newest first; a scoped token only itself."""
    tokens = live_tokens().filter(user=user)
    return tokens if user.scope is None else tokens.filter(pk=user.scope.pk)


def tokens_visible_to(user: User) -> QuerySet[ApiToken]:
    """Return the tokens that a person may see and revoke: their own, or all."""
    return live_tokens() if user.is_administrator else tokens_of(user)


def live_tokens() -> QuerySet[ApiToken]:
    """Return everybody's valid tokens, newest first."""
    live = ApiToken.objects.filter(expiry__gt=Now())
    return live.select_related("user").order_by("-created", "pk")


def has_expired(token: ApiToken) -> bool:
    """Return whether a token has expired, by the database's clock. One query."""
    return token.expiry is not None and token.expiry < clocks.database_now()


def forget_expired(user: User) -> None:
    """Delete a person's tokens that have expired."""
    ApiToken.objects.filter(user=user, expiry__lt=Now()).delete()


def longest_days() -> int:
    """Return for how many days a token may be valid."""
    return int(max(LONGEST_DAYS, settings.API_TOKEN_DAYS))


def token_create(
    *,
    by: User,
    name: str = "",
    days: int | None = None,
    lives: dt.timedelta | None = None,
    template_ids: list[int] | None = None,
    purposes: list[str] | None = None,
    max_lease_seconds: int | None = None,
    max_workspaces: int | None = None,
    reads_mounts: bool = False,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret.

    It is valid for `lives`, or some days, by default API_TOKEN_DAYS. Only a hash of the
    secret is stored, so it cannot be shown again. A bound that is None is no bound; see
    ApiToken.
    """
    lives = lives or dt.timedelta(days=days or settings.API_TOKEN_DAYS)
    # knox counts from the clock of this process.
    ahead = timezone.now() - clocks.database_now()
    token, secret = ApiToken.objects.create(
        user=by,
        name=name,
        expiry=lives - ahead,
        template_ids=template_ids,
        purposes=purposes,
        max_lease_seconds=max_lease_seconds,
        max_workspaces=max_workspaces,
        reads_mounts=reads_mounts,
    )
    return token, secret


def token_revoke(token: ApiToken) -> None:
    """Revoke the token."""
    token.delete()
