"""Change the database's tables to this release's, one process after another.

Each of several hosts may run it: the first one works, the others wait and find nothing
to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

# Any number that nobody else locks in our database.
LOCK = 0x636C6F6E


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        lock = connections[options["database"]].copy()
        lock.settings_dict["OPTIONS"].pop("pool", None)
        with closing(lock), lock.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            if cursor.fetchone() != (True,):
                self.stdout.write("Another process migrates. Waiting for it…")
                cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            with _patience(connections[options["database"]]):
                super().handle(*args, **options)


@contextmanager
def _patience(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let Django think for as long as it needs between the statements of a migration.

    PostgreSQL would end a transaction of a worker that is idle for so long.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET idle_in_transaction_session_timeout")
