"""Locks that end with the transaction."""

from __future__ import annotations

from django.db import connection


def pass_one_by_one(what: str, pk: int) -> None:
    """Wait for the lock on a row, and hold it until the transaction ends.

    Teams come before sites, sites before people.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [what, pk])
