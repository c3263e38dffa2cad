"""How often somebody may try to sign in: guesses are slowed down, on page and API.

Attempts are counted in the database, so that all web processes count together: by
name and address, by name, and by address, in windows that begin with the first
attempt. One that succeeds is not counted. Names are kept as hashes: people type
passwords into the wrong field.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone

from provisioner.accounts.models import SignInAttempts
from provisioner.lib.times import duration_text

WINDOW = dt.timedelta(minutes=5)
# The first is what a person meets who forgot a password. The second bounds guesses
# from many addresses, the third guesses at many names; both leave room for others.
BY_NAME_AND_ADDRESS = 10
BY_NAME = 50
BY_ADDRESS = 200


class TooManyAttempts(Exception):
    """Too many attempts to sign in did not work. Try again in a while."""

    def __init__(self, *, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(
            "Too many attempts to sign in did not work. Try again in "
            f"{duration_text(seconds)}."
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt, counted already; `succeeded` takes it back."""

    name_and_address: str
    name: str
    address: str

    @property
    def limits(self) -> dict[str, int]:
        return {
            self.name_and_address: BY_NAME_AND_ADDRESS,
            self.name: BY_NAME,
            self.address: BY_ADDRESS,
        }

    def succeeded(self) -> None:
        """Forget what failed before it from there; others' failures stay counted."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE accounts_signinattempts SET count = greatest(0, count - 1) "
                "WHERE key = ANY(%s)",
                [[self.name, self.address]],
            )
            cursor.execute(
                "DELETE FROM accounts_signinattempts WHERE key = %s",
                [self.name_and_address],
            )


def begin_attempt(request: HttpRequest | None, *, name: str) -> Attempt:
    """Count an attempt before its password is looked at.

    Counting first leaves no gap for guesses that come at the same time.

    Raises: TooManyAttempts.
    """
    address = client_address(request)
    name = name.strip().casefold()
    attempt = Attempt(
        name_and_address=_key("both", name, address),
        name=_key("name", name),
        address=_key("address", address),
    )
    now = timezone.now()
    waits = [
        (ends_at - now).total_seconds()
        for key, count, ends_at in _counted(attempt, now=now)
        if count > attempt.limits[key]
    ]
    if waits:
        raise TooManyAttempts(seconds=max(1, math.ceil(max(waits))))
    SignInAttempts.objects.filter(ends_at__lte=now).delete()
    return attempt


def _counted(
    attempt: Attempt, *, now: dt.datetime
) -> list[tuple[str, int, dt.datetime]]:
    """Count one more under each key; a window that has ended begins anew."""
    keys = sorted(
        attempt.limits
    )  # in one order, or two attempts could block each other
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_signinattempts AS known (key, count, ends_at) "
            "SELECT key, 1, %(ends_at)s FROM unnest(%(keys)s::text[]) AS key "
            "ON CONFLICT (key) DO UPDATE SET "
            "count = CASE WHEN known.ends_at <= %(now)s THEN 1 "
            "ELSE known.count + 1 END, "
            "ends_at = CASE WHEN known.ends_at <= %(now)s THEN excluded.ends_at "
            "ELSE known.ends_at END RETURNING key, count, ends_at",
            {"keys": keys, "now": now, "ends_at": now + WINDOW},
        )
        rows: list[tuple[str, int, dt.datetime]] = cursor.fetchall()
    return rows


def client_address(request: HttpRequest | None) -> str:
    """Return where a request comes from.

    Behind a proxy that is trusted, that is what it has put last into
    X-Forwarded-For; what stands before anybody could have made up.
    """
    if request is None:
        return ""
    forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR", ""))
    if settings.BEHIND_TLS_PROXY and forwarded:
        return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
