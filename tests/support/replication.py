"""A PostgreSQL with a synchronous standby, on loopback, of the embedded programs."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from provisioner.embedded_postgres.base import PROGRAMS
from provisioner.lib.database_urls import database_of
from tests.support.database_outage import leave_database
from tests.support.documents import blocks_of
from tests.support.ports import free_ports
from tests.support.processes import wait_until_ended

PAGE: Path = settings.BASE_DIR / "docs/high-availability.md"
# PostgreSQL refuses to run as root; the embedded one has made this account.
ACCOUNT = "pgserver" if os.geteuid() == 0 else None
WITHIN_SECONDS = 60.0
# Nothing here outlives its machine. Standbys may come and go at once.
CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 32MB
fsync = off
wal_retrieve_retry_interval = 200ms
"""


def run(program: str, *arguments: str, user: str | None = ACCOUNT) -> None:
    """Run a program of PostgreSQL; those of a server run under its account."""
    ran = subprocess.run(
        [str(PROGRAMS / program), *arguments],
        user=user,
        cwd="/",
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@dataclass(frozen=True)
class Server:
    """One server; its data directory is its own."""

    data: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def ask(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as asking:
            cursor = asking.execute(query.encode(), arguments)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        run(
            "pg_ctl",
            *("start", "-w", "-D", str(self.data), "-l", str(self.data / "log")),
            *("-o", f"-p {self.port}"),
        )

    def configure(self, line: str) -> None:
        """Set what takes no restart."""
        with (self.data / "postgresql.auto.conf").open("a") as configuration:
            configuration.write(f"{line}\n")
        run("pg_ctl", "reload", "-D", str(self.data))

    def promote(self) -> None:
        run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def kill(self) -> None:
        """End it as a machine ends that loses power; its processes follow at once."""
        process_id = self._process_id()
        if process_id is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
                wait_until_ended(process_id)

    def _process_id(self) -> int | None:
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        return None


@dataclass(frozen=True)
class Pair:
    """A primary that waits for its standby at each commit."""

    primary: Server
    standby: Server

    @property
    def url(self) -> str:
        """Return the DATABASE_URL of both: the primary is found, whichever it is."""
        ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{ports}/postgres"


@contextmanager
def replicated(*, dump: Path | None = None) -> Iterator[Pair]:
    """Start both, with the contents of a dump."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="cloneyard-pair-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        if ACCOUNT:
            shutil.chown(root, ACCOUNT)
        first, second = free_ports(2)
        primary = Server(root / "a", first)
        initdb = ("--auth=trust", "--username=postgres", "--encoding=utf8", "--no-sync")
        run("initdb", *initdb, "-D", str(primary.data))
        with (primary.data / "postgresql.conf").open("a") as configuration:
            configuration.write(CONFIGURATION)
        stack.callback(primary.kill)
        primary.start()
        if dump is not None:
            run("pg_restore", "--no-owner", "-d", primary.url, str(dump), user=None)
        standby = Server(root / "b", second)
        run(*_to_a_standby(primary, standby), "--no-sync")
        stack.callback(standby.kill)
        standby.start()
        # By name: a promoted standby, which copies this, would wait for nobody else.
        primary.configure("synchronous_standby_names = 'FIRST 1 (b)'")
        pair = Pair(primary, standby)
        _wait_for_synchronous(pair)
        yield pair


def _to_a_standby(primary: Server, standby: Server) -> list[str]:
    """Return the command of the page, with these servers in place of its hosts."""
    [block] = blocks_of(PAGE, "sh")
    ours = f"host=127.0.0.1 port={primary.port} user=postgres"
    typed = block.text.replace("host=a.example.com user=replicator", ours)
    return shlex.split(typed.replace("/var/lib/postgresql/18/main", str(standby.data)))


def _wait_for_synchronous(pair: Pair) -> None:
    ends = time.monotonic() + WITHIN_SECONDS
    query = "SELECT sync_state FROM pg_stat_replication"
    while pair.primary.ask(query) != [("sync",)]:
        assert time.monotonic() < ends, pair.primary.ask("TABLE pg_stat_replication")
        time.sleep(0.05)


def dump_of_tests(path: Path) -> None:
    """Dump this test's database, with what it has committed."""
    connection.ensure_connection()
    where = connection.settings_dict
    run(
        "pg_dump",
        *("--format=custom", "--compress=0", "--file", str(path)),
        *("-h", str(where["HOST"]), "-U", str(where["USER"]), str(where["NAME"])),
        user=None,
    )


@contextmanager
def looking_at(url: str) -> Iterator[None]:
    """Let models of this thread look at another database."""
    ours = connections[DEFAULT_DB_ALIAS]
    other = DatabaseWrapper(
        {**ours.settings_dict, **database_of(url), "CONN_MAX_AGE": 0}, DEFAULT_DB_ALIAS
    )
    leave_database()
    connections[DEFAULT_DB_ALIAS] = other
    try:
        yield
    finally:
        other.close()
        connections[DEFAULT_DB_ALIAS] = ours
