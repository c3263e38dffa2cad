"""The server's state: one SQLite file below the root, shared by threads and processes.

Writes are short `BEGIN IMMEDIATE` blocks that never span a round trip to the client.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from provisioner.lab.perforce import case

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value TEXT NOT NULL);
-- Specs of every kind; `fields` is JSON of tag -> text or list of texts.
CREATE TABLE IF NOT EXISTS specs (
  kind TEXT NOT NULL, name TEXT NOT NULL, fields TEXT NOT NULL,
  updated INTEGER NOT NULL, accessed INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
-- md5(password) in upper-case hex: the protocol needs no more, and no less.
CREATE TABLE IF NOT EXISTS passwords (user TEXT PRIMARY KEY, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS password_resets (user TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS tickets (
  ticket TEXT PRIMARY KEY, user TEXT NOT NULL, expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS changes (
  change INTEGER PRIMARY KEY, status TEXT NOT NULL, user TEXT NOT NULL,
  client TEXT NOT NULL, time INTEGER NOT NULL, type TEXT NOT NULL,
  description TEXT NOT NULL, path TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS changes_by_client ON changes (client, status);
CREATE TABLE IF NOT EXISTS revisions (
  path TEXT NOT NULL, revision INTEGER NOT NULL, change INTEGER NOT NULL,
  action TEXT NOT NULL, type TEXT NOT NULL, time INTEGER NOT NULL,
  modified INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (path, revision)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS revisions_by_change ON revisions (change);
CREATE TABLE IF NOT EXISTS have (
  client TEXT NOT NULL, path TEXT NOT NULL, client_path TEXT NOT NULL,
  revision INTEGER NOT NULL, synced INTEGER NOT NULL,
  PRIMARY KEY (client, path)
) WITHOUT ROWID;
-- Opened files. `revision` is the have revision, 0 for adds; change 0 is the default.
CREATE TABLE IF NOT EXISTS opened (
  client TEXT NOT NULL, path TEXT NOT NULL, client_path TEXT NOT NULL,
  revision INTEGER NOT NULL, action TEXT NOT NULL, type TEXT NOT NULL,
  user TEXT NOT NULL, change INTEGER NOT NULL,
  PRIMARY KEY (client, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS opened_by_path ON opened (path);
-- Opened files that only their client may submit, until they are closed.
CREATE TABLE IF NOT EXISTS file_locks (
  path TEXT PRIMARY KEY, client TEXT NOT NULL, user TEXT NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS closed_is_unlocked AFTER DELETE ON opened BEGIN
  DELETE FROM file_locks WHERE path=OLD.path AND client=OLD.client;
END;
-- Opened files that are not at their client: `integrate -v`, until they are closed.
CREATE TABLE IF NOT EXISTS virtual (
  client TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (client, path)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS closed_is_not_virtual AFTER DELETE ON opened BEGIN
  DELETE FROM virtual WHERE path=OLD.path AND client=OLD.client;
END;
CREATE TABLE IF NOT EXISTS shelved (
  change INTEGER NOT NULL, path TEXT NOT NULL, revision INTEGER NOT NULL,
  action TEXT NOT NULL, type TEXT NOT NULL, modified INTEGER NOT NULL,
  digest TEXT NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (change, path)
) WITHOUT ROWID;
-- What the files of a shelf took from others, as `resolves` has it.
CREATE TABLE IF NOT EXISTS shelved_origins (
  change INTEGER NOT NULL, path TEXT NOT NULL, other TEXT NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL,
  base TEXT NOT NULL, base_revision INTEGER NOT NULL, how TEXT NOT NULL,
  PRIMARY KEY (change, path, other)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS label_files (
  label TEXT NOT NULL, path TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (label, path)
) WITHOUT ROWID;
-- Where the content of restored revisions lies, until it is first read; `path` and
-- `number` name the depot revision it was restored for.
CREATE TABLE IF NOT EXISTS archives (
  digest TEXT PRIMARY KEY, file TEXT NOT NULL, revision TEXT NOT NULL,
  storage TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL
) WITHOUT ROWID;
-- Integrations, as each file of the pair sees them. Revisions begin after `start`.
CREATE TABLE IF NOT EXISTS integrations (
  path TEXT NOT NULL, other TEXT NOT NULL,
  other_start INTEGER NOT NULL, other_end INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL,
  how TEXT NOT NULL, change INTEGER NOT NULL,
  PRIMARY KEY (path, other, end, other_end, how)
) WITHOUT ROWID;
-- What an opened file takes from another one (itself, after a sync): revisions after
-- `start` up to `end`. `how` is empty until somebody resolved it.
CREATE TABLE IF NOT EXISTS resolves (
  client TEXT NOT NULL, path TEXT NOT NULL, other TEXT NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL,
  base TEXT NOT NULL, base_revision INTEGER NOT NULL, how TEXT NOT NULL,
  PRIMARY KEY (client, path, other)
) WITHOUT ROWID;
-- Which jobs a change fixes, and what status they get when it is submitted.
CREATE TABLE IF NOT EXISTS fixes (
  job TEXT NOT NULL, change INTEGER NOT NULL, time INTEGER NOT NULL,
  user TEXT NOT NULL, client TEXT NOT NULL, status TEXT NOT NULL,
  PRIMARY KEY (job, change)
) WITHOUT ROWID;
-- Files of a sync that several connections fetch, and whose they are.
CREATE TABLE IF NOT EXISTS transfers (
  token TEXT PRIMARY KEY, user TEXT NOT NULL, client TEXT NOT NULL,
  options TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS send_queue (
  token TEXT NOT NULL, number INTEGER NOT NULL, path TEXT NOT NULL,
  place TEXT NOT NULL, revision INTEGER NOT NULL, state INTEGER NOT NULL,
  PRIMARY KEY (token, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS send_queue_by_state ON send_queue (token, state);
CREATE TABLE IF NOT EXISTS fault_hits (
  rule TEXT PRIMARY KEY, hits INTEGER NOT NULL
);
"""
_BUSY_SECONDS = 60


class CaseMismatch(Exception):
    """A root keeps its handling of case, whatever -C says later."""


class Database:
    """One handle on the state; each thread opens its own."""

    def __init__(self, path: Path) -> None:
        # The state of the server that gives change numbers; None: this one does.
        self.numbers: Database | None = None
        self._connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        # A killed process loses nothing that was committed: the system has it. Only a
        # power failure could harm a lab, and that is worth the speed.
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute("PRAGMA cache_size=-65536")
        self._connection.execute("PRAGMA temp_store=MEMORY")

    def attach(self, path: Path, *, name: str) -> None:
        """Let statements name the tables of another server's state as `name.table`."""
        self._connection.execute(f"ATTACH DATABASE ? AS {name}", (str(path),))

    def create_tables(self) -> None:
        """Create missing tables. Safe to repeat, also concurrently.

        Raises: CaseMismatch if the tables compare names in another way.
        """
        wanted = case.columns(_SCHEMA)
        self._connection.executescript(wanted)
        [(made,)] = self.rows("SELECT sql FROM sqlite_master WHERE name='revisions'")
        if ("NOCASE" in str(made)) != case.is_ignored():
            raise CaseMismatch("The root was made with another way to compare names.")

    def close(self) -> None:
        if self.numbers is not None:
            self.numbers.close()
        self._connection.close()

    def define(self, name: str, function: Callable[[str], str | None]) -> None:
        """Let statements call a function of a text; a later one replaces it."""
        self._connection.create_function(name, 1, function, deterministic=True)

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def execute_many(self, sql: str, rows: Iterator[tuple[object, ...]]) -> None:
        self._connection.executemany(sql, rows)

    def rows(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        return self._connection.execute(sql, parameters).fetchall()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Run a block as one transaction that holds the write lock from its start."""
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Run a block of queries on one consistent state; it must not write."""
        yield from self._transaction("BEGIN")

    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def next_change(self) -> int:
        """Return a new change number; only inside `writing`.

        Numbers are global: an edge gets them from the server that it follows.
        """
        if self.numbers is not None:
            with self.numbers.writing():
                return self.numbers.next_change()
        number = int(self.counter("change")) + 1
        self.set_counter("change", str(number))
        return number

    def counter(self, name: str) -> str:
        """Return a counter; "0" if it was never set."""
        row = self.execute("SELECT value FROM counters WHERE name=?", name).fetchone()
        return str(row[0]) if row else "0"

    def set_counter(self, name: str, value: str) -> None:
        self.execute(
            "INSERT INTO counters VALUES (?,?)"
            " ON CONFLICT DO UPDATE SET value=excluded.value",
            name,
            value,
        )
