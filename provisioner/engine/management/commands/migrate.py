"""Change the database's tables to this release's, one process after another.

Each of several hosts may run it: the first one works, the others wait and find nothing
to do.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from django.core.management.commands import migrate
from django.db import connections

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
            super().handle(*args, **options)
