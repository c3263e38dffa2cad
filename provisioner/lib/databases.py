"""What a database raises that is not there, and how to go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.db import InterfaceError, OperationalError, connection

# It ended, cut the connection, or broke a tie between two who waited for each other.
DATABASE_WENT_AWAY = (OperationalError, InterfaceError)


@contextlib.contextmanager
def unless_database_is_away() -> Iterator[None]:
    """Go on where the database went away. What comes next connects anew."""
    try:
        yield
    except DATABASE_WENT_AWAY:
        drop_broken_connection()


def drop_broken_connection() -> None:
    """Have what comes next connect anew where the connection broke.

    Django keeps one that broke outside of a transaction until the request has ended,
    and a step is no request: it would fail at each try, for ever.
    """
    if not connection.in_atomic_block and not connection.is_usable():
        connection.close()
