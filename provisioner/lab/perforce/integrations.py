# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""Integrations between files, and what opened files still have to resolve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from provisioner.lab.perforce.database import Database

# How the file that gives sees what the file that takes calls so.
REVERSE = {
    "branch from": "branch into",
    "copy from": "copy into",
    "merge from": "merge into",
    "edit from": "edit into",
    "ignored": "ignored by",
    "delete from": "delete into",
    "moved from": "moved into",
}


class Resolve(NamedTuple):
    """What an opened file integrates from another; `how` is "" until resolved.

    After a sync the source is the file itself, after an unshelve `path@=change`.
    """

    client: str
    path: str
    other: str
    start: int
    end: int
    base: str
    base_revision: int
    how: str

    @property
    def revisions(self) -> str:
        """Return the integrated revisions, as people write them; a shelf has none."""
        if "@=" in self.other:
            return ""
        first = f"#{self.start + 1},"
        return f"{first if self.start + 1 < self.end else ''}#{self.end}"


def virtual_paths(database: Database, *, client: str) -> set[str]:
    """Return the opened files of a client that `integrate -v` left at the server."""
    rows = database.rows("SELECT path FROM virtual WHERE client=?", client)
    return {str(path) for (path,) in rows}


_COLUMNS = "client, path, other, start, end, base, base_revision, how"


def resolves_of(
    database: Database, *, client: str, path: str | None = None
) -> list[Resolve]:
    """Return what a client's files integrate, resolved or not, by path."""
    condition = "" if path is None else " AND path=?"
    rows = database.rows(
        f"SELECT {_COLUMNS} FROM resolves WHERE client=?{condition} ORDER BY path",
        *((client,) if path is None else (client, path)),
    )
    return [Resolve._make(row) for row in rows]


def put_resolves(database: Database, resolves: Iterable[Resolve]) -> None:
    """Record what files integrate; only inside `writing`."""
    database.execute_many(
        "INSERT OR REPLACE INTO resolves VALUES (?,?,?,?,?,?,?,?)", iter(resolves)
    )


def drop_resolves(database: Database, *, client: str, paths: Iterable[str]) -> None:
    """Delete records of what files integrate; only inside `writing`."""
    database.execute_many(
        "DELETE FROM resolves WHERE client=? AND path=?",
        ((client, path) for path in paths),
    )


def record_submitted(
    database: Database, resolve: Resolve, *, revision: int, change: int
) -> None:
    """Record the integrations of a submitted revision, for both files.

    Only inside `writing`.
    """
    if resolve.other.partition("@=")[0] == resolve.path:
        return
    row = (resolve.start, resolve.end, revision - 1, revision)
    sql = "INSERT OR REPLACE INTO integrations VALUES (?,?,?,?,?,?,?,?)"
    database.execute(sql, resolve.path, resolve.other, *row, resolve.how, change)
    database.execute(
        sql,
        *(resolve.other, resolve.path, *row[2:], *row[:2]),
        *(REVERSE[resolve.how], change),
    )


def last_taken(database: Database, *, path: str, other: str) -> int:
    """Return the newest revision of `other` integrated from or to `path`, or 0."""
    row = database.execute(
        "SELECT max(other_end) FROM integrations WHERE path=? AND other=?", path, other
    ).fetchone()
    return int(row[0] or 0)


def integrations_of(
    database: Database, *, path: str, revision: int
) -> list[tuple[str, str, int, int]]:
    """Return how a revision was made or used: how, other file, start, end."""
    return [
        (str(how), str(other), int(str(start)), int(str(end)))
        for how, other, start, end in database.rows(
            "SELECT how, other, other_start, other_end FROM integrations"
            " WHERE path=? AND end=? ORDER BY other",
            path,
            revision,
        )
    ]


class Integration(NamedTuple):
    """An integration from or to another file; revisions begin after `start`."""

    path: str
    other: str
    other_start: int
    other_end: int
    start: int
    end: int
    how: str
    change: int


def all_integrations(database: Database) -> list[Integration]:
    """Return the integrations of all files, by path, newest first."""
    rows = database.rows(
        "SELECT path, other, other_start, other_end, start, end, how, change"
        " FROM integrations ORDER BY path, end DESC, other"
    )
    return [Integration._make(row) for row in rows]
