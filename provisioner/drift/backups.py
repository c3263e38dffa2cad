"""Dumps of the database, and what one is worth: restored beside it, and compared.

The database itself is only read. Source: https://www.postgresql.org/docs/18/app-pgrestore.html
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model
from psycopg import Connection, sql

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.embedded_postgres.base import PROGRAMS
from provisioner.lib import clocks
from provisioner.workspaces.models import Workspace

# What PostgreSQL's programs take besides the password, which no process list may show.
PASSED_ON = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}
COUNTED: dict[str, type[Model]] = {
    "accounts": User,
    "templates": Template,
    "snapshots": Snapshot,
    "workspaces": Workspace,
}
LINES_OF_NOTE = 5


class BackupFailed(Exception):
    """A program of PostgreSQL failed; says what it said."""


@dataclass(frozen=True, kw_only=True)
class Count:
    what: str
    restored: int
    now: int


@dataclass(frozen=True, kw_only=True)
class Drill:
    """`newest_at` is None if the audit log of the dump is empty.

    `to_adopt` are workspaces whose tags the dump does not know. `ahead` are migrations
    that `migrate` would add to the dump; `unknown` those of a newer release.
    """

    seconds: float
    newest_at: dt.datetime | None
    age: dt.timedelta | None
    counts: list[Count]
    to_adopt: list[str]
    ahead: list[str]
    unknown: list[str]


def back_up(path: Path) -> None:
    """Dump the database into a file that only its owner reads.

    It has its name once it is whole.

    Raises: BackupFailed.
    """
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    try:
        _run("pg_dump", "--format=custom", "--file", str(part))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def drill(dump: Path) -> Drill:
    """Restore a dump into a database of its own, compare it with ours, and drop it.

    Raises: BackupFailed.
    """
    started = clocks.database_now()
    with _scratch_database() as name:
        _restore(dump, name)
        with _connected_to(name) as restored:
            return _compared(restored, started=started)


def _compared(restored: Connection[Any], *, started: dt.datetime) -> Drill:
    [(newest_at,)] = _rows(restored, "SELECT max(at) FROM {}", Event)
    known = {tag for (tag,) in _rows(restored, "SELECT tag FROM {}", Workspace)}
    current = Workspace.objects.exclude(state=Workspace.State.RETIRED).order_by("pk")
    ours = {*MigrationLoader(connection).disk_migrations}
    apps = {app for app, _ in ours}
    applied = {
        (app, name)
        for app, name in restored.execute("SELECT app, name FROM django_migrations")
        if app in apps
    }
    now = clocks.database_now()
    return Drill(
        seconds=(now - started).total_seconds(),
        newest_at=newest_at,
        age=now - newest_at if newest_at else None,
        counts=[
            Count(
                what=what,
                restored=_rows(restored, "SELECT count(*) FROM {}", model)[0][0],
                now=model._base_manager.count(),
            )
            for what, model in COUNTED.items()
        ],
        to_adopt=[
            name for tag, name in current.values_list("tag", "name") if tag not in known
        ],
        ahead=_names(ours - applied),
        unknown=_names(applied - ours),
    )


def _rows(
    restored: Connection[Any], query: LiteralString, model: type[Model]
) -> list[Any]:
    table = sql.Identifier(model._meta.db_table)
    return restored.execute(sql.SQL(query).format(table)).fetchall()


def _names(migrations: set[tuple[str, str]]) -> list[str]:
    return sorted(f"{app}.{name}" for app, name in migrations)


@contextmanager
def _scratch_database() -> Iterator[str]:
    """Yield the name of an empty database; one that a killed drill left goes first."""
    name = f"{connection.settings_dict['NAME']}_drill"
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    with connection.cursor() as cursor:
        cursor.execute(drop.format(sql.Identifier(name)))
        cursor.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(
                sql.Identifier(name)
            )
        )
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            cursor.execute(drop.format(sql.Identifier(name)))


def _restore(dump: Path, name: str) -> None:
    options = ["--no-owner", "--no-privileges", "--exit-on-error", "--dbname", name]
    _run("pg_restore", *options, "--", str(dump))


def _run(name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL at our server and database.

    Raises: BackupFailed.
    """
    ran = subprocess.run(  # noqa: S603 - PostgreSQL's own, without a shell
        [_find_program(name), *arguments],
        env={"PATH": os.defpath, **_libpq_variables()},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise BackupFailed("\n".join(ran.stderr.strip().splitlines()[-LINES_OF_NOTE:]))


def _find_program(name: str) -> str:
    """Return the path of a program of PostgreSQL: the embedded server's, or PATH's.

    Raises: BackupFailed.
    """
    found = shutil.which(name, path=None if settings.DATABASE_URL else str(PROGRAMS))
    if found is None:
        raise BackupFailed(
            f"There is no {name} in PATH. Install the client programs of PostgreSQL, "
            "of the server's release or newer."
        )
    return found


def _libpq_variables() -> dict[str, str]:
    """Return how PostgreSQL's programs reach our server."""
    params = connection.get_connection_params()
    return {
        variable: str(params[name])
        for name, variable in PASSED_ON.items()
        if params.get(name)
    }


@contextmanager
def _connected_to(name: str) -> Iterator[Connection[Any]]:
    params = connection.get_connection_params()
    known = {key: params[key] for key in PASSED_ON if key in params}
    with Connection.connect(**{**known, "dbname": name}) as restored:
        yield restored
