"""Specs in the database: clients, users, depots, labels."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from provisioner.lab.perforce import case
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.specs import Fields, FieldValue


@dataclass(frozen=True, kw_only=True)
class StoredSpec:
    """A saved spec; `updated` and `accessed` are seconds since the epoch."""

    kind: str
    name: str
    fields: Fields
    updated: int
    accessed: int

    def text(self, tag: str) -> str:
        """Return a text field; "" if absent."""
        value = self.fields.get(tag, "")
        assert isinstance(value, str)
        return value

    def lines(self, tag: str) -> list[str]:
        """Return a list field; empty if absent."""
        value = self.fields.get(tag, [])
        assert isinstance(value, list)
        return value


def _stored(row: tuple[object, ...]) -> StoredSpec:
    kind, name, fields, updated, accessed = row
    return StoredSpec(
        kind=str(kind),
        name=str(name),
        fields=json.loads(str(fields)),
        updated=int(str(updated)),
        accessed=int(str(accessed)),
    )


_COLUMNS = "SELECT kind, name, fields, updated, accessed FROM specs"


def find_spec(database: Database, *, kind: str, name: str) -> StoredSpec | None:
    row = database.execute(f"{_COLUMNS} WHERE kind=? AND name=?", kind, name).fetchone()
    return _stored(row) if row else None


def known_name(database: Database, kind: str, name: str) -> str:
    """Return the spelling of the spec's name; the name itself if there is none."""
    if not case.is_ignored():
        return name
    row = database.execute(
        "SELECT name FROM specs WHERE kind=? AND name=?", kind, name
    ).fetchone()
    return str(row[0]) if row else name


def all_specs(
    database: Database,
    *,
    kind: str,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> list[StoredSpec]:
    """Return the specs of a kind by name: those whose names are wanted."""
    rows = database.rows(f"{_COLUMNS} WHERE kind=? ORDER BY name", kind)
    return [_stored(row) for row in rows if is_wanted(str(row[1]))]


def save_spec(
    database: Database, *, kind: str, name: str, fields: Mapping[str, FieldValue]
) -> bool:
    """Save a spec; return False if it was already the same."""
    now = int(time.time())
    with database.writing():
        old = find_spec(database, kind=kind, name=name)
        if old is not None and old.fields == fields:
            return False
        database.execute(
            "INSERT INTO specs VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET"
            " fields=excluded.fields, updated=excluded.updated,"
            " accessed=excluded.accessed",
            kind,
            name,
            json.dumps(fields),
            now,
            now,
        )
    return True


def delete_spec(database: Database, *, kind: str, name: str) -> None:
    """Delete a spec; only inside `writing`."""
    database.execute("DELETE FROM specs WHERE kind=? AND name=?", kind, name)


def touch_spec(
    database: Database, *, kind: str, name: str, granularity_seconds: int
) -> None:
    """Update a spec's access date, unless it is recent enough."""
    now = int(time.time())
    row = database.execute(
        "SELECT 1 FROM specs WHERE kind=? AND name=? AND accessed<?",
        kind,
        name,
        now - granularity_seconds,
    ).fetchone()
    if row:
        with database.writing():
            database.execute(
                "UPDATE specs SET accessed=? WHERE kind=? AND name=?", now, kind, name
            )
