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
        close_unusable_connection()


def close_unusable_connection() -> None:
    """Have what comes next connect anew where the connection broke, or is too old.

    Django does this around requests, and Procrastinate around jobs. What lasts longer
    than the database was there has to: a broken connection would fail for ever.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
