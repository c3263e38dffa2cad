# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""Shelves: opened files stored with a pending change, and their integrations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.integrations import Resolve
from provisioner.lab.perforce.revisions import Revision

# How a shelf is named where a revision is expected.
SHELF_MARK = "@="


class Shelved(NamedTuple):
    """One file of a shelf; `revision` is the one it was opened at, 0 for adds."""

    change: int
    path: str
    revision: int
    action: str
    type: str
    modified: int
    digest: str
    size: int

    @property
    def is_delete(self) -> bool:
        return self.action in ("delete", "move/delete")

    @property
    def name(self) -> str:
        """Return the name of the shelved file in resolves."""
        return f"{self.path}{SHELF_MARK}{self.change}"

    @property
    def as_revision(self) -> Revision:
        """Return the content as if it were a revision of the depot file."""
        return Revision(
            path=self.path,
            revision=self.revision,
            change=self.change,
            action=self.action,
            type=self.type,
            time=self.modified,
            modified=self.modified,
            digest=self.digest,
            size=self.size,
        )


_COLUMNS = "change, path, revision, action, type, modified, digest, size"


def shelf_of(database: Database, *, change: int) -> list[Shelved]:
    """Return the files shelved in a change, by path."""
    rows = database.rows(
        f"SELECT {_COLUMNS} FROM shelved WHERE change=? ORDER BY path", change
    )
    return [Shelved._make(row) for row in rows]


def all_shelved(database: Database) -> list[Shelved]:
    """Return the files of all shelves, by path."""
    rows = database.rows(f"SELECT {_COLUMNS} FROM shelved ORDER BY path, change")
    return [Shelved._make(row) for row in rows]


def find_shelved(database: Database, *, name: str) -> Shelved | None:
    """Return the file that a resolve names; None if its shelf is gone."""
    path, mark, change = name.rpartition(SHELF_MARK)
    if not mark or not change.isdecimal():
        return None
    row = database.execute(
        f"SELECT {_COLUMNS} FROM shelved WHERE change=? AND path=?", int(change), path
    ).fetchone()
    return Shelved._make(row) if row else None


def put_shelved(
    database: Database, files: Iterable[Shelved], *, origins: Iterable[Resolve]
) -> None:
    """Store files and their integrations; only inside `writing`."""
    files = list(files)
    drop_shelved(database, files)
    database.execute_many("INSERT INTO shelved VALUES (?,?,?,?,?,?,?,?)", iter(files))
    change_of = {file.path: file.change for file in files}
    database.execute_many(
        "INSERT INTO shelved_origins VALUES (?,?,?,?,?,?,?,?)",
        ((change_of[origin.path], *origin[1:]) for origin in origins),
    )


def drop_shelved(database: Database, files: Iterable[Shelved]) -> None:
    """Delete files of a shelf; only inside `writing`."""
    for file in files:
        for table in ("shelved", "shelved_origins"):
            database.execute(
                f"DELETE FROM {table} WHERE change=? AND path=?", file.change, file.path
            )


def origins_of(database: Database, *, change: int, client: str) -> list[Resolve]:
    """Return the integrations of a shelf's files, as if a client had opened them."""
    rows = database.rows(
        "SELECT path, other, start, end, base, base_revision, how"
        " FROM shelved_origins WHERE change=?",
        change,
    )
    return [Resolve._make((client, *row)) for row in rows]
