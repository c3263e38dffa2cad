# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""Have lists and opened files of clients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from provisioner.lab.perforce import paths
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.filespec import FileSet


class Have(NamedTuple):
    """One line of a have list."""

    path: str
    client_path: str
    revision: int
    synced: int


class Opened(NamedTuple):
    """One opened file; revision 0 means that it is new; change 0 is the default."""

    client: str
    path: str
    client_path: str
    revision: int
    action: str
    type: str
    user: str
    change: int

    @property
    def is_delete(self) -> bool:
        return self.action in ("delete", "move/delete")

    @property
    def is_add(self) -> bool:
        return self.action in ("add", "move/add", "branch", "import")


# `Have._make` without its check: this runs once for each file of a client.
_MAKE_HAVE = partial(tuple.__new__, Have)

OPENED_COLUMNS = "client, path, client_path, revision, action, type, user, change"


def have_list(database: Database, *, client: str) -> Iterator[Have]:
    """Yield a client's whole have list by depot path."""
    rows = database.execute(
        "SELECT path, client_path, revision, synced FROM have WHERE client=?"
        " ORDER BY path",
        client,
    )
    return map(_MAKE_HAVE, rows)


def count_have(database: Database, *, client: str) -> int:
    """Return how many files a client has."""
    row = database.execute("SELECT count(*) FROM have WHERE client=?", client)
    return int(row.fetchone()[0])


def have_in(database: Database, files: FileSet, *, client: str) -> Iterator[Have]:
    """Yield the part of a set that a client has, by depot path."""
    if files.is_whole_client:
        yield from have_list(database, client=client)
        return
    column = "client_path" if files.in_client_syntax else "path"
    prefix = paths.literal_prefix(files.pattern)
    rows = database.execute(
        "SELECT path, client_path, revision, synced FROM have"
        f" WHERE client=? AND {column}>=? AND {column}<? ORDER BY path",
        client,
        prefix,
        prefix + paths.AFTER_ALL,
    )
    for have in map(_MAKE_HAVE, rows):
        if files.has_file(path=have.path, client_path=have.client_path):
            yield have


def find_have(database: Database, *, client: str, path: str) -> Have | None:
    row = database.execute(
        "SELECT path, client_path, revision, synced FROM have"
        " WHERE client=? AND path=?",
        client,
        path,
    ).fetchone()
    return Have._make(row) if row else None


def is_opened(database: Database, *, client: str, path: str) -> bool:
    sql = "SELECT 1 FROM opened WHERE client=? AND path=?"
    return database.execute(sql, client, path).fetchone() is not None


def opened_by(database: Database, *, client: str) -> dict[str, Opened]:
    """Return a client's opened files by depot path."""
    rows = database.execute(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE client=? ORDER BY path", client
    )
    return {row[1]: Opened._make(row) for row in rows}
