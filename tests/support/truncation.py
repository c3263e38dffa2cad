"""Between transactional tests: the rows go, fast.

Django truncates every table and then makes content types and permissions anew, which
takes longer than most tests; few tables have rows, and few rows.
"""

from __future__ import annotations

import functools

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from provisioner.audit_log.models import Event

# What migrations wrote and no test changes.
LASTING = frozenset(
    {
        ContentType._meta.db_table,
        Permission._meta.db_table,
        MigrationRecorder.Migration._meta.db_table,
        "procrastinate_version",
    }
)


# Only a session that says so may truncate the audit log, and none may delete from it.
MAY_TRUNCATE_THE_AUDIT_LOG = "-c cloneyard.allow_truncate=on"
AUDIT_LOG = Event._meta.db_table


def empty_tables() -> None:
    """Delete the rows of all tables, in any order: no foreign key is checked.

    The server has to be one whose superuser we are, as of the embedded one.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_emptying())
        if Event.objects.exists():  # most of the time goes into this one
            cursor.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(AUDIT_LOG)))


@functools.cache
def _emptying() -> sql.Composed:
    """Return statements that empty all tables but the audit log, to be sent at once."""
    with connection.cursor() as cursor:
        tables = (
            set(connection.introspection.table_names(cursor)) - LASTING - {AUDIT_LOG}
        )
    statements = [
        sql.SQL("SET LOCAL session_replication_role = replica"),
        *(
            sql.SQL("DELETE FROM {}").format(sql.Identifier(table))
            for table in sorted(tables)
        ),
    ]
    return sql.SQL("; ").join(statements)
