"""How often tokens are used.

Counted in the database, so that all web processes count together, in windows that begin
with their first request.
"""

from __future__ import annotations

import datetime as dt
import math

from django.db import connection
from django.utils import timezone

from provisioner.accounts.models import ApiToken
from provisioner.lib.times import duration_text

WINDOW = dt.timedelta(minutes=1)
NOTED_EVERY = dt.timedelta(minutes=1)


class TooManyRequests(Exception):
    """This token has sent more requests than it may in a minute."""

    def __init__(self, *, allowed: int, what: str, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(
            f"This token may be used for {allowed:,} {what} a minute. Try again in "
            f"{duration_text(seconds)}."
        )


def count_use(token: ApiToken, *, kind: str, what: str, allowed: int) -> None:
    """Count one request of a kind, including refused ones.

    One statement that does not wait for the disk, as losing a count in a crash does no
    harm. Call it outside transactions.

    Raises: TooManyRequests.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_tokenuse AS known (token_id, kind, count, ends_at) "
            "SELECT digest, %(kind)s, 1, "
            "statement_timestamp() + make_interval(secs => %(window)s) "
            "FROM accounts_apitoken, "
            "(SELECT set_config('synchronous_commit', 'off', true)) AS hurried "
            "WHERE digest = %(token)s "
            "ON CONFLICT (token_id, kind) DO UPDATE SET "
            "count = CASE WHEN known.ends_at <= statement_timestamp() THEN 1 "
            "ELSE known.count + 1 END, "
            "ends_at = CASE WHEN known.ends_at <= statement_timestamp() "
            "THEN excluded.ends_at ELSE known.ends_at END "
            "RETURNING count, ends_at - statement_timestamp()",
            {"token": token.pk, "kind": kind, "window": WINDOW.total_seconds()},
        )
        counted = cursor.fetchone()
    if counted is None:
        return  # revoked since it was checked: this request was the last
    count, ends_in = counted
    if count > allowed:
        seconds = max(1, math.ceil(ends_in.total_seconds()))
        raise TooManyRequests(allowed=allowed, what=what, seconds=seconds)


def is_use_noted(token: ApiToken) -> bool:
    """Return whether a use of the token was recorded within the last minute."""
    noted_at = token.last_used_at
    return noted_at is not None and timezone.now() - noted_at < NOTED_EVERY


def note_last_use(token: ApiToken) -> None:
    """Record when a token was last used, to the minute."""
    if not is_use_noted(token):
        token.last_used_at = timezone.now()
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=token.last_used_at)
