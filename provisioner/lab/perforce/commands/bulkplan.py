# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""What a sync has to do, as tables: a flush of a million files.

The database compares revisions and have list in one pass, and writes the have list from
the result; only what is reported and sent to the client passes through here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from provisioner.lab.perforce import case, paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.syncplan import MAKE_STEP, Step
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.filespec import FileSet
from provisioner.lab.perforce.holdings import opened_by
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import DELETED, MAKE_REVISION, rows_at

# `planned` is every revision at the point, `gone` what the client loses; a file that
# moves within it is in both.
_TABLES = """
CREATE TEMP TABLE IF NOT EXISTS planned (
  path TEXT, place TEXT, revision INTEGER, size INTEGER, change INTEGER,
  had INTEGER, had_place TEXT, is_deleted INTEGER,
  type TEXT, modified INTEGER, digest TEXT
);
CREATE TEMP TABLE IF NOT EXISTS gone (path TEXT, place TEXT, revision INTEGER);
DELETE FROM planned;
DELETE FROM gone;
"""
# Which of what is planned the client shall have, and what has to be done about it.
_WANTED = "place IS NOT NULL AND NOT is_deleted"
_MOVED = "had_place IS NOT NULL AND had_place<>place"
_COLUMNS = "path, revision, size, change, action"
# Those that only a sync needs which sends the files.
_CONTENT = "type, modified, digest"
_ACTION = (
    f"CASE WHEN had IS NULL OR {_MOVED} THEN 'added'"
    " WHEN had<>revision THEN 'updated' ELSE 'refreshed' END"
)
_KINDS = ("head", "change", "date", "none", "client", "label")


# What happens to one file: action, depot path, client path, revision, and size (None of
# a deletion).
Noted = tuple[str, str, str, int, int | None]


def bulk_plan(
    request: Request, client: Client, wanted: FileSet, *, sends_files: bool = False
) -> BulkPlan | None:
    """Return the plan of a file argument; None if each file has to be examined.

    That is so if files are opened, hidden or overlaid, or a pattern has wildcards
    before its end.
    """
    if (
        wanted.pattern != paths.literal_prefix(wanted.pattern) + "..."
        or wanted.upper.kind not in _KINDS
        or wanted.lower is not None
        or wanted.access is not None
        or request.has("p")
        or any(line.flag in ("+", "&") for line in client.view.lines)
        or opened_by(request.state.database, client=client.name)
    ):
        return None
    return BulkPlan(
        request.state.database,
        client,
        wanted,
        is_forced=request.has("f"),
        limit=request.number("m", default=0),
        sends_files=sends_files,
    )


class BulkPlan:
    """What a sync of one file argument has to do; nothing is done yet.

    Create it within a transaction. The next one on the connection invalidates it.
    """

    opened: tuple[()] = ()
    bypassed: tuple[()] = ()
    merges: tuple[()] = ()

    def __init__(
        self,
        database: Database,
        client: Client,
        wanted: FileSet,
        *,
        is_forced: bool,
        limit: int,
        sends_files: bool,
    ) -> None:
        self._sends_files = sends_files
        # Of the files given out by `files`, in that order, their rows.
        self._rows: list[int] = []
        self._database = database
        self._client = client
        self._wanted = wanted
        # What is had at the right place and revision only changes when forced to.
        self._changed = _WANTED
        if not is_forced:
            self._changed += f" AND (had IS NOT revision OR {_MOVED})"
        for statement in case.columns(_TABLES).split(";"):
            database.execute(statement)
        has_list = self._numbers(
            "SELECT EXISTS (SELECT 1 FROM have WHERE client=?)", client.name
        )
        for prefix in wanted.prefixes:
            self._add_revisions(prefix, has_list=bool(has_list[0]))
        rows, placed, known, changed, moved, *totals = self._numbers(
            f"SELECT count(*), count(place), sum({_WANTED} AND had IS NOT NULL),"
            f" sum({self._changed}), sum({_WANTED} AND {_MOVED}),"
            f" sum(iif({self._changed}, size, 0)),"
            f" max(iif({self._changed}, change, 0)) FROM planned"
        )
        set_condition, set_values = self._had_in_set()
        (had,) = self._numbers(
            f"SELECT count(*) FROM have WHERE {set_condition}", *set_values
        )
        # Each file that is had is still wanted, and where it is.
        is_kept = had == known and not moved
        if moved:
            database.execute(
                "INSERT INTO gone SELECT path, had_place, had FROM planned"
                f" WHERE {_WANTED} AND {_MOVED}"
            )
        if not is_kept:
            database.execute(
                "INSERT INTO gone SELECT path, client_path, revision FROM have"
                f" WHERE {set_condition} AND path NOT IN (SELECT path FROM planned"
                " WHERE place IS NOT NULL AND NOT is_deleted) ORDER BY path",
                *set_values,
            )
        (gone,) = self._numbers("SELECT count(*) FROM gone")
        self.found = bool(placed) or wanted.upper.kind == "none"
        self.has_any = bool(had or known)
        self.outside_view = rows > placed
        self.scanned = rows + had
        self.count = min(limit, gone + changed) if limit else gone + changed
        # Deletions come first, also where -m cuts off the rest.
        self._deletions = min(gone, self.count)
        self._totals = totals if self.count == gone + changed else None

    def _numbers(self, query: str, *values: object) -> list[int]:
        return [int(n or 0) for n in self._database.execute(query, *values).fetchone()]

    def _add_revisions(self, prefix: str, *, has_list: bool) -> None:
        columns, content = _COLUMNS, "NULL, NULL, NULL"
        if self._sends_files:
            columns, content = f"{_COLUMNS}, {_CONTENT}", "r.type, r.modified, r.digest"
        revisions, found_by = rows_at(self._wanted, prefix, columns=columns)
        place, placed_by = self._place(prefix)
        deleted = ", ".join(f"'{action}'" for action in sorted(DELETED))
        # A new client has nothing: then no file is looked for in its list.
        had, source, had_by = "NULL, NULL", f"({revisions}) r", tuple[str, ...]()
        if has_list:
            had = "h.revision, h.client_path"
            source += " LEFT JOIN have h ON h.client=? AND h.path=r.path"
            had_by = (self._client.name,)
        self._database.execute(
            f"INSERT INTO planned SELECT r.path, {place}, r.revision, r.size, r.change,"
            f" {had}, r.action IN ({deleted}), {content} FROM {source}",
            *(*placed_by, *found_by, *had_by),
        )
        if self._wanted.in_client_syntax and not self._wanted.is_whole_client:
            start = paths.literal_prefix(self._wanted.pattern)
            self._database.execute(
                "DELETE FROM planned WHERE NOT coalesce(place>=? AND place<?, 0)",
                *(start, start + paths.AFTER_ALL),
            )

    def _place(self, prefix: str) -> tuple[str, tuple[object, ...]]:
        """Return an expression, with its values, for the client path of an `r.path`.

        The path begins with the prefix.
        """
        tree = self._client.view.moved_tree
        if tree is None:
            self._database.define("place_of", self._client.view.to_client)
            return "place_of(r.path)", ()
        depot, client = tree
        size = len(depot)
        collation = " COLLATE NOCASE" if case.is_ignored() else ""
        if case.begins(prefix, depot):
            return "? || substr(r.path, ?)", (client, size + 1)
        return (
            f"CASE WHEN substr(r.path, 1, ?)=?{collation}"
            " THEN ? || substr(r.path, ?) END",
            (size, depot, client, size + 1),
        )

    def _had_in_set(self) -> tuple[str, tuple[object, ...]]:
        """Return a condition, with its values, for the part of the set that is had."""
        wanted = self._wanted
        if wanted.is_whole_client:
            return "client=?", (self._client.name,)
        start = paths.literal_prefix(wanted.pattern)
        column = "client_path" if wanted.in_client_syntax else "path"
        return (
            f"client=? AND {column}>=? AND {column}<?",
            (self._client.name, start, start + paths.AFTER_ALL),
        )

    def totals(self) -> tuple[int, int]:
        """Return the bytes to send, and their newest change."""
        if self._totals is not None:
            return self._totals[0], self._totals[1]
        size, change = self._numbers(
            "SELECT sum(size), max(change) FROM (SELECT size, change FROM planned"
            f" WHERE {self._changed} ORDER BY rowid LIMIT ?)",
            self.count - self._deletions,
        )
        return size, change

    def steps(self) -> Iterator[Noted]:
        """Yield what happens to each file, deletions first."""
        deletions = self._database.execute(
            "SELECT 'deleted', path, place, revision, NULL FROM gone"
            " ORDER BY rowid LIMIT ?",
            self._deletions,
        )
        yield from deletions
        others = self._database.execute(
            f"SELECT {_ACTION}, path, place, revision, size FROM planned"
            f" WHERE {self._changed} ORDER BY rowid LIMIT ?",
            self.count - self._deletions,
        )
        yield from others

    def files(self) -> Iterator[Step]:
        """Yield what happens to each file, with what has to be sent of it."""
        deletions = self._database.execute(
            "SELECT rowid, path, place, revision FROM gone ORDER BY rowid LIMIT ?",
            self._deletions,
        )
        for row, path, place, number in deletions:
            self._rows.append(row)
            yield Step("deleted", path, place, number, None)
        others = self._database.execute(
            f"SELECT rowid, {_ACTION}, place, path, revision, change, '', type, 0,"
            f" modified, digest, size FROM planned WHERE {self._changed}"
            " ORDER BY rowid LIMIT ?",
            self.count - self._deletions,
        )
        add_row = self._rows.append
        for row, action, place, *revision in others:
            add_row(row)
            new = MAKE_REVISION(revision)
            yield MAKE_STEP((action, new[0], place, new[1], new))

    def forget(self, undone: Collection[int]) -> None:
        """Leave out what did not happen, by position among the `files`."""
        for index in undone:
            table = "gone" if index < self._deletions else "planned"
            self._database.execute(
                f"DELETE FROM {table} WHERE rowid=?", self._rows[index]
            )
        self.count -= len(undone)
        self._deletions -= sum(index < self._deletions for index in undone)

    def write(self) -> None:
        """Record all of it in the have list; only inside `writing`."""
        if self._deletions:
            self._database.execute(
                "DELETE FROM have WHERE client=? AND path IN"
                " (SELECT path FROM gone ORDER BY rowid LIMIT ?)",
                *(self._client.name, self._deletions),
            )
        self._database.execute(
            "INSERT INTO have SELECT ?, path, place, revision, ? FROM planned"
            f" WHERE {self._changed} ORDER BY rowid LIMIT ? ON CONFLICT DO UPDATE SET"
            " client_path=excluded.client_path, revision=excluded.revision,"
            " synced=excluded.synced",
            *(self._client.name, int(time.time())),
            self.count - self._deletions,
        )
