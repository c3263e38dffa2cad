"""Having the database away for everybody but the test that asks for it."""

from __future__ import annotations

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from procrastinate.contrib.django.utils import connector_params
from psycopg import sql


def leave_database() -> None:
    """Close our connection and the pool that it came from."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    assert isinstance(wrapper, DatabaseWrapper)
    wrapper.close()
    wrapper.close_pool()  # type: ignore[attr-defined]  # the stubs have no pools


def let_in(is_open: bool) -> None:
    """Open or close the database to connections, over another database.

    The connection pool of this process starts fresh, without broken connections.
    """
    name = connection.settings_dict["NAME"]
    parameters = {**connector_params(), "dbname": "postgres"}
    parameters.pop("context", None)
    with psycopg.connect(**parameters, autocommit=True) as other:
        other.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
                sql.Identifier(name), sql.Literal(is_open)
            )
        )
    if is_open:
        leave_database()


def cut_off_everybody_else() -> None:
    """End all connections but ours, as a restart of the server does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def cut_by_the_server() -> None:
    """End our connection, from another."""
    connection.ensure_connection()
    parameters = connector_params()
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as other:
        backend = connection.connection.info.backend_pid
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])


def left_in_an_answer() -> None:
    """Leave our connection as where an answer was given up: psycopg sees no end."""
    connection.ensure_connection()
    connection.connection.pgconn.send_query(b"SELECT pg_sleep(60)")
