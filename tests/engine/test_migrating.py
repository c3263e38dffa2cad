"""Migrations of a database that several hosts share, and who starts before them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import pre_migrate
from procrastinate.contrib.django.utils import connector_params
from psycopg import sql

from provisioner.embedded_postgres.base import start_server
from provisioner.engine.management.commands.migrate import LOCK

pytestmark = pytest.mark.django_db(transaction=True)

WITHIN_SECONDS = 60.0


def other_connection(name: str = "") -> psycopg.Connection:
    parameters = {**connector_params(), "autocommit": True}
    return psycopg.connect(**parameters | ({"dbname": name} if name else {}))


def test_of_two_who_migrate_one_waits_for_the_other() -> None:
    said = StringIO()

    def migrate() -> None:
        try:
            call_command("migrate", verbosity=1, interactive=False, stdout=said)
        finally:
            connection.close()

    second = threading.Thread(target=migrate)
    with other_connection() as first:
        first.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        second.start()
        ends = time.monotonic() + WITHIN_SECONDS
        while "Waiting for it" not in said.getvalue():
            assert time.monotonic() < ends
            time.sleep(0.05)
        assert "No migrations to apply" not in said.getvalue()
    second.join()

    assert "No migrations to apply" in said.getvalue()
    with other_connection() as later:
        # A lock is given back when PostgreSQL notices that its connection ended.
        later.execute(f"SET lock_timeout = '{WITHIN_SECONDS:.0f}s'")
        later.execute("SELECT pg_advisory_lock(%s)", [LOCK])


def idle_limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        [limit] = cursor.fetchone()
    return str(limit)


def test_a_migration_may_take_its_time_between_two_statements() -> None:
    usual, meanwhile = idle_limit(), []
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '7s'")

    def note(**kwargs: object) -> None:
        meanwhile.append(idle_limit())

    pre_migrate.connect(note)
    try:
        call_command("migrate", verbosity=0, interactive=False)
    finally:
        pre_migrate.disconnect(note)

    assert set(meanwhile) == {"0"}
    assert idle_limit() == usual


@pytest.fixture(scope="module")
def empty_database(django_db_setup: None) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"{connection.settings_dict['NAME']}_empty"
    with other_connection("postgres") as anywhere:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        anywhere.execute(drop.format(sql.Identifier(name)))
        anywhere.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        host = start_server(settings.VAR_DIR / "postgres")["host"]
        yield f"postgresql://postgres@/{name}?host={host}"
        anywhere.execute(drop.format(sql.Identifier(name)))


@pytest.mark.parametrize(
    "command",
    [
        ["manage.py", "web"],
        ["manage.py", "worker"],
        ["-m", "gunicorn", "--config", "python:provisioner.webserver"],
    ],
    ids=lambda command: command[-1],
)
def test_who_starts_before_the_migrations_says_so_in_one_sentence(
    command: list[str], empty_database: str, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "DATABASE_URL": empty_database,
            "VAR_DIR": str(tmp_path),
            "WEB_BIND": "127.0.0.1:0",
        },
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS * 2,
        check=False,
    )

    assert ran.returncode != 0
    sentence = "The database has no tables yet: run `cloneyard-server migrate` first."
    assert ran.stderr.count(sentence) == 1, ran.stderr
    assert "Traceback" not in ran.stderr
