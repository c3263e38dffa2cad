"""A backup of the test database, and its restoration: sequences go back, too."""

from __future__ import annotations

from django.db import connection
from psycopg import sql

from tests.support.databases import end_other_sessions


def back_up(name: str) -> None:
    """Keep the test database as it is now under another name."""
    _copy(_name(), to=name)


def restore(name: str) -> None:
    """Restore the test database from the backup, and drop the backup."""
    end_other_sessions()
    _on_the_server("DROP DATABASE {}", _name())
    _copy(name, to=_name())
    drop(name)


def drop(name: str) -> None:
    _on_the_server("DROP DATABASE IF EXISTS {}", name)


def _copy(database: str, *, to: str) -> None:
    end_other_sessions()
    # Nothing here has to outlive the server: files are copied without a log of them.
    _on_the_server("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", to, database)


def _name() -> str:
    return str(connection.settings_dict["NAME"])


def _on_the_server(statement: str, *names: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
