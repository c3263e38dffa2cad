"""The database: its loss, locks until a commit, and names that are taken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.db import IntegrityError, InterfaceError, OperationalError, connection
from psycopg.pq import TransactionStatus

from provisioner.lib.refusals import NameTaken

# It ended, cut the connection, or broke a tie between two who waited for each other.
DATABASE_WENT_AWAY = (OperationalError, InterfaceError)


@contextlib.contextmanager
def unless_database_is_away() -> Iterator[None]:
    """Ignore the loss of the database in the block; reconnect afterwards."""
    try:
        yield
    except DATABASE_WENT_AWAY:
        close_unusable_connection()


def require_no_transaction() -> None:
    """Ensure that no remote system is called while rows are locked.

    PostgreSQL ends a transaction in which nothing happens for WORKER_STALLED_SECONDS.
    Transactions around tests do not count, as for `transaction.atomic(durable=True)`.

    Raises: RuntimeError.
    """
    blocks = connection.atomic_blocks
    if any(not block._from_testcase for block in blocks):  # type: ignore[attr-defined]
        raise RuntimeError("No remote system is called within a transaction.")


def close_unusable_connection() -> None:
    """Close the database connection if it is broken or too old.

    Django does this around requests, Procrastinate around jobs. Code that outlives a
    database restart must do it itself, or its broken connection fails forever.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def is_at_rest() -> bool:
    """Return whether the connection is open and between transactions.

    Known here, without a question: the server may have gone all the same.
    """
    raw = connection.connection
    if raw is None or raw.closed:
        return False
    return bool(raw.info.transaction_status == TransactionStatus.IDLE)


@contextlib.contextmanager
def refusing_taken(name: str, *, constraint: str) -> Iterator[None]:
    """Refuse a name that violates a unique constraint.

    Raises: NameTaken.
    """
    try:
        yield
    except IntegrityError as error:
        if constraint in str(error):
            raise NameTaken(name=name) from error
        raise


def pass_one_by_one(what: str, pk: int) -> None:
    """Lock a row until the transaction ends, waiting for others that hold it.

    Lock teams before sites, and sites before people.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [what, pk])
