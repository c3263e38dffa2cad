"""The lab's state in SQLite: immediate transactions, nothing acknowledged is lost."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from provisioner.lab.ontap import records


class Row(Protocol):
    """What a dataclass needs in order to be stored."""

    TABLE: ClassVar[str]
    KEY: ClassVar[str]
    SEARCHED: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=Row)

_KINDS: tuple[type[Row], ...] = (
    records.Svm,
    records.Volume,
    records.Snapshot,
    records.ConsistencyGroup,
    records.GroupSnapshot,
    records.ExportPolicy,
    records.Job,
    records.SnapshotPolicy,
    records.EfficiencyPolicy,
    records.SvmPeer,
    records.QosPolicy,
    records.QuotaRule,
    records.SnapmirrorPolicy,
    records.Relationship,
    records.Destination,
    records.Transfer,
)


class Store:
    """One connection, used by one thread at a time.

    The write-ahead log survives the end of the process at any moment: a transaction
    that returned is still there at the next start.
    """

    # The SVM whose rows are found; None: all are.
    svm_uuid: str | None = None

    def __init__(self, path: Path) -> None:
        """Open the database, creating it if necessary."""
        self._lock = threading.RLock()
        self._depth = 0
        # Rows that were found, as a request asks for the same few again and again.
        self._found: dict[tuple[type[Row], str | int], Row] = {}
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        with self.transaction():
            for kind in _KINDS:
                self._create_table(kind)
        self._db.execute("CREATE TABLE IF NOT EXISTS setting (name PRIMARY KEY, value)")

    def _create_table(self, kind: type[Row]) -> None:
        """Create the table, replacing one of an earlier lab with other columns."""
        columns = ["key", *kind.SEARCHED, "document"]
        found = self._db.execute(f"PRAGMA table_info({kind.TABLE})").fetchall()
        outdated: list[Row] = []
        if found and [row[1] for row in found] != columns:
            outdated = self._rows(kind, "1", ())
            self._db.execute(f"DROP TABLE {kind.TABLE}")
        self._db.execute(
            f"CREATE TABLE IF NOT EXISTS {kind.TABLE} "
            f"({', '.join(columns)}, PRIMARY KEY (key))"
        )
        for name in kind.SEARCHED:
            self._db.execute(
                f"CREATE INDEX IF NOT EXISTS {kind.TABLE}_{name} "
                f"ON {kind.TABLE} ({name})"
            )
        for row in outdated:
            self.save(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as a transaction, or as part of a surrounding one."""
        with self._lock:
            if self._depth == 0:
                self._db.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._found.clear()
                    self._db.execute("ROLLBACK")
                raise
            self._depth -= 1
            if self._depth == 0:
                self._db.execute("COMMIT")

    def save(self, row: Row) -> None:
        """Write `row`, new or changed."""
        document = asdict(row)
        names = ("key", *row.SEARCHED, "document")
        values = (
            document[row.KEY],
            *(getattr(row, name) for name in row.SEARCHED),
            json.dumps(document),
        )
        marks = ", ".join("?" * len(names))
        with self._lock:
            self._found.pop((type(row), document[row.KEY]), None)
            self._db.execute(
                f"INSERT OR REPLACE INTO {row.TABLE} "  # noqa: S608 - names are ours
                f"({', '.join(names)}) VALUES ({marks})",
                values,
            )

    def remove(self, row: Row) -> None:
        """Delete `row`, if it is there."""
        with self._lock:
            self._found.pop((type(row), getattr(row, row.KEY)), None)
            self._db.execute(
                f"DELETE FROM {row.TABLE} WHERE key = ?",  # noqa: S608 - as above
                (getattr(row, row.KEY),),
            )

    def find(self, kind: type[R], key: str | int | None) -> R | None:
        """Return the row with the key, or None."""
        if key is None:
            return None
        with self._lock:
            known = self._found.get((kind, key))
            if isinstance(known, kind):
                return known
            rows = self._rows(kind, "key = ?", (key,))
            if not rows:
                return None
            self._found[kind, key] = rows[0]
            return rows[0]

    def get(self, kind: type[R], key: str | int | None) -> R:
        """Return the row with the key, which must be there."""
        row = self.find(kind, key)
        if row is None:
            raise LookupError(f"no {kind.TABLE} {key}")
        return row

    def select(self, kind: type[R], **equals: str | int | None) -> list[R]:
        """Return the rows whose searched columns equal the values, oldest first.

        A value of None means "any".
        """
        given = {name: value for name, value in equals.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in given) or "1"
        return self._rows(kind, where, tuple(given.values()))

    def count(self, kind: type[Row], **equals: str | int) -> int:
        """Return how many rows `select` would return."""
        where = " AND ".join(f"{name} = ?" for name in equals) or "1"
        query = f"SELECT count(*) FROM {kind.TABLE} WHERE {where}"  # noqa: S608 - as above
        with self._lock:
            number = self._db.execute(query, tuple(equals.values())).fetchone()[0]
        assert isinstance(number, int)
        return number

    def _rows(self, kind: type[R], where: str, values: tuple[object, ...]) -> list[R]:
        query = (
            f"SELECT document FROM {kind.TABLE} "  # noqa: S608 - as above
            f"WHERE {where} ORDER BY rowid"
        )
        with self._lock:
            documents = self._db.execute(query, values).fetchall()
        known = {field.name for field in fields(kind)}
        return [
            kind(**{k: v for k, v in json.loads(text).items() if k in known})
            for (text,) in documents
        ]

    def setting(self, name: str) -> Any:
        """Return a stored JSON value, or None."""
        with self._lock:
            row = self._db.execute(
                "SELECT value FROM setting WHERE name = ?", (name,)
            ).fetchone()
        return json.loads(row[0]) if row else None

    def remember(self, name: str, value: object) -> None:
        """Store a JSON value under `name`."""
        with self._lock:
            self._db.execute(
                "INSERT OR REPLACE INTO setting VALUES (?, ?)",
                (name, json.dumps(value)),
            )

    def next_number(self, name: str, *, start: int) -> int:
        """Return the next number of a named sequence."""
        with self.transaction():
            number: int = self.setting(name) or start
            self.remember(name, number + 1)
        return number

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._db.close()
