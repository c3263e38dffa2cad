"""The test database is migrated once, and copied until a migration changes.

Migrations take some 30 s of a processor, for which all workers would wait.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection
from fasteners import InterProcessLock
from psycopg import sql
from pytest_django import DjangoDbBlocker

from tests.support.database_outage import leave_database
from tests.support.jobs import leave_jobs

MIGRATED = "test_migrated"


def migrations_digest() -> str:
    """Return a digest of all that makes the tables: migrations, apps, versions."""
    root = settings.BASE_DIR
    files = [root / "requirements.txt", *sorted(root.glob("*/*/migrations/*.py"))]
    digest = hashlib.sha256(repr(settings.INSTALLED_APPS).encode())
    for file in files:
        digest.update(str(file).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class Migrated:
    """A migrated database that the first worker makes; all others copy it.

    It stays for later runs. Its comment says of which migrations it is.
    """

    def __init__(self) -> None:
        self.digest = migrations_digest()
        self.lock = InterProcessLock(settings.VAR_DIR / ".migrated.lock")
        self.is_ours = False

    def find(self) -> None:
        """Lock the migrated database; use it if it is up to date, else drop it."""
        settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
        self.lock.acquire()
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
                " WHERE datname = %s",
                [MIGRATED],
            )
            if cursor.fetchone() != (self.digest,):
                self.is_ours = True
                self._drop()
                return
        settings.DATABASES["default"]["TEST"]["TEMPLATE"] = MIGRATED

    def keep(self) -> None:
        """Release it to the others, first made from our database if there was none."""
        if self.is_ours:
            self._copy()
        self.lock.release()

    def _copy(self) -> None:
        name = connection.settings_dict["NAME"]
        leave_database()
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(MIGRATED), sql.Identifier(name)
                )
            )
            cursor.execute(
                sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                    sql.Identifier(MIGRATED), sql.Literal(self.digest)
                )
            )

    def _drop(self) -> None:
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(MIGRATED))
            )


@pytest.fixture(scope="session")
def _migrated(
    django_db_modify_db_settings: None,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    django_db_keepdb: bool,
) -> Migrated | None:
    if django_db_keepdb:  # it may be of other migrations, and have rows
        return None
    migrated = Migrated()
    with django_db_blocker.unblock():
        migrated.find()
    return migrated


@pytest.fixture(scope="session")
def django_db_setup(
    _migrated: Migrated | None,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """Set up the test database by migrations or as a copy."""
    if _migrated is not None:
        with django_db_blocker.unblock():
            _migrated.keep()
    yield
    with django_db_blocker.unblock():
        leave_jobs()
        end_other_sessions()


def end_other_sessions() -> None:
    """End what killed workers left: a database that is in use cannot be dropped."""
    name = connection.settings_dict["NAME"]
    leave_database()
    with connection._nodb_cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = %s",
            [name],
        )
