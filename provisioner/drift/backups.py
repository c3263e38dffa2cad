"""Dumps of the database, and what one is worth: restored beside it, and compared.

The database itself is only read. Source: https://www.postgresql.org/docs/18/app-pgrestore.html
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.client import DatabaseClient
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Model
from psycopg import sql

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.embedded_postgres.base import PROGRAMS
from provisioner.lib import clocks
from provisioner.workspaces.models import Workspace

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
        database = str(connection.settings_dict["NAME"])
        _run("pg_dump", "--format=custom", "--file", str(part), "--dbname", database)
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
        with closing(_database(name)) as restored:
            return _compared(restored, started=started)


def _compared(restored: BaseDatabaseWrapper, *, started: dt.datetime) -> Drill:
    [(newest_at,)] = _rows(restored, "SELECT max(at) FROM {}", Event)
    known = {tag for (tag,) in _rows(restored, "SELECT tag FROM {}", Workspace)}
    current = Workspace.objects.exclude(state=Workspace.State.RETIRED).order_by("pk")
    ours = {*MigrationLoader(connection).disk_migrations}
    apps = {app for app, _ in ours}
    applied = {
        (app, name)
        for app, name in MigrationRecorder(restored).applied_migrations()
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
    restored: BaseDatabaseWrapper, query: LiteralString, model: type[Model]
) -> list[Any]:
    table = sql.Identifier(model._meta.db_table)
    with restored.cursor() as cursor:
        cursor.execute(sql.SQL(query).format(table))
        rows: list[Any] = cursor.fetchall()
    return rows


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
    """Run a program of PostgreSQL at our server.

    Django knows its options, and passes no password where a process list shows it.

    Raises: BackupFailed.
    """
    connection.ensure_connection()
    # Of several hosts, or embedded, it is known now. At a standby that it passes by,
    # libpq would end where a database that was just created is not there yet.
    found = connection.connection.info
    [_, *where, _], variables = DatabaseClient.settings_to_cmd_args_env(
        {**connection.settings_dict, "HOST": found.host, "PORT": found.port}, []
    )
    ran = subprocess.run(
        [_find_program(name), *where, *arguments],
        env={"PATH": os.defpath, **(variables or {})},
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


def _database(name: str) -> BaseDatabaseWrapper:
    """Return a connection of its own to another database of our server."""
    other = connection.copy()
    other.settings_dict["NAME"] = name
    other.settings_dict["OPTIONS"].pop("pool", None)
    return other
