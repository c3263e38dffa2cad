"""How an edge, build server or replica follows the server of another root.

A thread copies what the other database has gained, a few times a second. Fault settings
hold it, or let it lag: see faults. The other server need not run.

What a real replica pulls from P4TARGET as a journal is read here from the other root.
Inferred: that one round brings everything since the last one. Not replicated: tickets
and configurables, which each server has of its own, and what is pending at another
server.

Source: p4 help replication, distributed, buildserver, forwardingreplica; "Commit-edge"
and "Replication" of the administrator's guide.
"""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from provisioner.lab.perforce import faults
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.specstore import find_spec
from provisioner.lab.perforce.state import (
    PerforceConfig,
    ServerState,
    database_path,
    open_state,
)

log = logging.getLogger("provisioner.lab.perforce")

_LOOKS_SECONDS = 0.1

# Tables with their keys. Work in progress stays where its clients are bound.
_GLOBAL = {
    "counters": ("name",),
    "specs": ("kind", "name"),
    "passwords": ("user",),
    "revisions": ("path", "revision"),
    "label_files": ("label", "path"),
    "integrations": ("path", "other", "end", "other_end", "how"),
    "fixes": ("job", "change"),
    "changes": ("change",),
}
_IN_PROGRESS = {
    "have": ("client", "path"),
    "opened": ("client", "path"),
    "file_locks": ("path",),
    "resolves": ("client", "path", "other"),
    "shelved": ("change", "path"),
    "shelved_origins": ("change", "path", "other"),
}


class Replication:
    """The thread of a replica that pulls."""

    def __init__(self, config: PerforceConfig) -> None:
        self._config = config
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._pull_until_stopped, name="perforce-lab pull", daemon=True
        )

    def start(self) -> None:
        """Bring everything once, whatever holds it later, and go on in a thread."""
        self._database = Database(database_path(self._config.root))
        assert self._config.replicates is not None
        self._database.attach(database_path(self._config.replicates), name="upstream")
        self._seen = self._version()
        _pull(self._database, self._config)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=10)
        self._database.close()

    def _version(self) -> int:
        [(version,)] = self._database.rows("PRAGMA upstream.data_version")
        return int(str(version))

    def _pull_until_stopped(self) -> None:
        changed_at: float | None = None
        while not self._stopped.wait(_LOOKS_SECONDS):
            version = self._version()
            if version != self._seen and changed_at is None:
                changed_at = time.monotonic()
            lag = faults.replication_lag(self._config.root)
            if changed_at is None or lag is None or time.monotonic() < changed_at + lag:
                continue
            self._seen, changed_at = version, None
            _pull(self._database, self._config)


def _pull(database: Database, config: PerforceConfig) -> None:
    """Make the replicated tables equal those of the upstream."""
    is_copy = not config.binds_clients
    tables = {**_GLOBAL, **(_IN_PROGRESS if is_copy else {})}
    with database.writing():
        for table, keys in tables.items():
            ours = ""
            if table == "changes" and not is_copy:
                ours = " AND status<>'pending'"
            same = " AND ".join(f"u.{key}=main.{table}.{key}" for key in keys)
            database.execute(
                f"DELETE FROM main.{table} WHERE TRUE{ours} AND NOT EXISTS "
                f"(SELECT 1 FROM upstream.{table} u WHERE {same})"
            )
            if table == "specs" and not is_copy:
                # Clients bound here are ours to change; see publish_client.
                ours = (
                    " AND NOT (kind='client' AND ?1 IS "
                    "json_extract(fields,'$.ServerID'))"
                )
            database.execute(
                f"INSERT OR REPLACE INTO main.{table} "
                f"SELECT * FROM upstream.{table} WHERE ?1 IS NOT NULL{ours} "
                f"EXCEPT SELECT * FROM main.{table}",
                config.server_id,
            )


def pull_forwarded(config: PerforceConfig) -> None:
    """Bring what a forwarded command has changed, unless a setting delays it.

    Source: "Deployment architecture" of the administrator's guide ("“write” commands
    are slower because local metadata must be pulled from the master"); inferred: that
    it is pulled before the command ends.
    """
    if faults.replication_lag(config.root) != 0:
        return
    assert config.replicates is not None
    database = Database(database_path(config.root))
    try:
        database.attach(database_path(config.replicates), name="upstream")
        _pull(database, config)
    finally:
        database.close()


def upstream_of(state: ServerState) -> ServerState:
    """Return the upstream's state, for a command that is forwarded to it."""
    config = state.config
    assert config.replicates is not None
    return open_state(replace(config, root=config.replicates, replicates=None))


def check_bound_elsewhere(state: ServerState, *, name: str) -> None:
    """Refuse to save a client that the installation knows as another server's.

    Raises: CommandError.
    Source: p4 help buildserver ("must still have a globally-unique name"); inferred:
    that an edge refuses it, too.
    """
    upstream = upstream_of(state).database
    try:
        spec = find_spec(upstream, kind="client", name=name)
    finally:
        upstream.close()
    if spec is None or spec.text("ServerID") == state.config.server_id:
        return
    if not spec.text("ServerID"):
        raise CommandError(7784, client=name)
    raise CommandError(
        7826,
        objectType="Client",
        objectName=name,
        serverID=spec.text("ServerID"),
        ourServerID=state.config.server_id,
    )


def publish_shelf(state: ServerState, *, change: int, promotes: bool) -> None:
    """Let the upstream have a shelf as it is here, once it is promoted.

    Source: p4 help shelve ("-p"); inferred: that other edges do not list it.
    """
    files = state.database.rows(
        "SELECT digest FROM shelved WHERE change=? AND digest<>''", change
    )
    upstream = upstream_of(state)
    try:
        known = upstream.database.rows("SELECT 1 FROM changes WHERE change=?", change)
        if not (promotes or known):
            return
        for (digest,) in files:
            upstream.content.add(state.content.read(str(digest)))
        with upstream.database.writing():
            for table in ("changes", "shelved", "shelved_origins"):
                upstream.database.execute(f"DELETE FROM {table} WHERE change=?", change)
                for row in state.database.rows(
                    f"SELECT * FROM {table} WHERE change=?", change
                ):
                    places = ",".join("?" * len(row))
                    upstream.database.execute(
                        f"INSERT INTO {table} VALUES ({places})", *row
                    )
    finally:
        upstream.database.close()


def publish_client(state: ServerState, *, name: str) -> None:
    """Let the upstream know a client that was made, changed or deleted here.

    Source: p4 help buildserver ("Domain information for bound workspaces is … global to
    all servers in the installation").
    """
    row = state.database.execute(
        "SELECT * FROM specs WHERE kind='client' AND name=?", name
    ).fetchone()
    upstream = upstream_of(state).database
    try:
        with upstream.writing():
            upstream.execute("DELETE FROM specs WHERE kind='client' AND name=?", name)
            if row is not None:
                upstream.execute("INSERT INTO specs VALUES (?,?,?,?,?)", *row)
    finally:
        upstream.close()
