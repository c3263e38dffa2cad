"""Locks that end with the transaction."""

from __future__ import annotations

from django.db import connection


def pass_one_by_one(what: str, pk: int) -> None:
    """Wait until nobody else is here about the same, and keep others out.

    It ends with the transaction. Teams come before sites, sites before people.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [what, pk])
