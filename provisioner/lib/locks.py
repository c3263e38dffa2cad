"""Locks that end with the transaction."""

from __future__ import annotations

from django.db import connection


def pass_one_by_one(what: str, pk: int) -> None:
    """Lock a row until the transaction ends, waiting for others that hold it.

    Lock teams before sites, and sites before people.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [what, pk])
