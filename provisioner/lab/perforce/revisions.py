# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""Revisions of depot files, and looking them up by file set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from provisioner.lab.perforce import case, paths
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.filespec import FileSet, Point
from provisioner.lab.perforce.messages import CommandError


class Revision(NamedTuple):
    """One revision of one depot file; times are seconds since the epoch."""

    path: str
    revision: int
    change: int
    action: str
    type: str
    time: int
    modified: int
    digest: str
    size: int

    @property
    def is_deleted(self) -> bool:
        return self.action in DELETED


# Actions that leave no content.
DELETED = frozenset({"delete", "move/delete", "purge", "archive"})


# `Revision._make` without its check: this runs once for each file of a sync.
MAKE_REVISION = partial(tuple.__new__, Revision)

_NAMES = Revision._fields
REVISION_COLUMNS = ", ".join(_NAMES)


def revisions_at(
    database: Database,
    files: FileSet,
    *,
    maps_itself: bool = False,
) -> list[Revision]:
    """Return, by path, the one revision of each file at the set's upper point.

    That includes deleted revisions. With a range, files whose latest revision up to the
    upper end is before its lower end are left out. A caller that `maps_itself` puts
    each path through the view anyway; for a whole client it gets everything that may be
    mapped.
    """
    found: list[Revision] = []
    for prefix in files.prefixes:
        query, values = rows_at(files, prefix)
        revisions: Iterable[Revision] = map(
            MAKE_REVISION, database.execute(query, *values)
        )
        is_all = files.pattern == prefix + "..." and not files.in_client_syntax
        if not (is_all or (maps_itself and files.is_whole_client)):
            revisions = filter(lambda r: files.has_depot_path(r.path), revisions)
        if files.lower is not None:
            revisions = filter(lambda r: _is_above(r, files.lower), revisions)
        if files.access is not None:
            revisions = [r for r in revisions if files.shows(r.path)]
        found.extend(revisions)
    return found


def rows_at(
    files: FileSet, prefix: str, *, columns: str = REVISION_COLUMNS
) -> tuple[str, tuple[object, ...]]:
    """Return the query, with its values, for the revisions below a prefix at a point.

    It may return more than the set: patterns, ranges and access are up to the caller.
    """
    point = files.upper
    span = (prefix, prefix + paths.AFTER_ALL)
    if point.kind == "none":
        return f"SELECT {REVISION_COLUMNS} FROM revisions WHERE 0", ()
    if point.kind in ("client", "label"):
        table = "have" if point.kind == "client" else "label_files"
        columns = ", ".join(f"r.{name} AS {name}" for name in _NAMES)
        return (
            f"SELECT {columns} FROM {table} h CROSS JOIN revisions r"
            f" ON r.path=h.path AND r.revision=h.revision"
            f" WHERE h.{'client' if table == 'have' else 'label'}=?"
            " AND h.path>=? AND h.path<?",
            (point.name, *span),
        )
    if point.kind == "shelf":
        return (
            "SELECT path, max(revision, 1), change, action, type, modified, modified,"
            " digest, size FROM shelved WHERE change=? AND path>=? AND path<?",
            (point.number, *span),
        )
    if point.kind == "number":
        return (
            f"SELECT {REVISION_COLUMNS} FROM revisions"
            " WHERE path>=? AND path<? AND revision=?",
            (*span, point.number),
        )
    condition, limit = "", tuple[int, ...]()
    if point.kind != "head":
        column = "change" if point.kind == "change" else "time"
        condition, limit = f" AND {column}<=?", (point.number,)
    # With max(), SQLite takes the other columns from the row that has it.
    return (
        f"SELECT {columns.replace('revision', 'max(revision) AS revision')}"
        f" FROM revisions WHERE path>=? AND path<?{condition} GROUP BY path",
        (*span, *limit),
    )


def _is_above(revision: Revision, lower: Point | None) -> bool:
    if lower is None or lower.kind == "none":
        return True
    if lower.kind == "change":
        return revision.change >= lower.number
    if lower.kind == "date":
        return revision.time >= lower.number
    if lower.kind == "number":
        return revision.revision >= lower.number
    raise CommandError(6242)


def revisions_in(database: Database, files: FileSet) -> Iterator[Revision]:
    """Yield every revision of a set up to its upper point, newest first."""
    limits = {r.path: r.revision for r in revisions_at(database, files)}
    for path, last in limits.items():
        rows = database.execute(
            f"SELECT {REVISION_COLUMNS} FROM revisions"
            " WHERE path=? AND revision<=? ORDER BY revision DESC",
            path,
            last,
        )
        for revision in map(Revision._make, rows):
            if _is_above(revision, files.lower):
                yield revision


def changes_in(database: Database, files: FileSet) -> set[int]:
    """Return the changes that made the revisions of a set."""
    kinds = {point.kind for point in (files.lower, files.upper) if point is not None}
    if not kinds <= {"head", "change"}:
        return {revision.change for revision in revisions_in(database, files)}
    lowest = files.lower.number if files.lower else 0
    highest = files.upper.number if files.upper.kind == "change" else _NO_LIMIT
    found: set[int] = set()
    for prefix in files.prefixes:
        rows = database.rows(
            "SELECT path, change FROM revisions"
            " WHERE path>=? AND path<? AND change BETWEEN ? AND ?",
            *(prefix, prefix + paths.AFTER_ALL, lowest, highest),
        )
        is_all = files.pattern == prefix + "..." and not files.in_client_syntax
        found.update(
            int(str(change))
            for path, change in rows
            if (is_all or files.has_depot_path(str(path))) and files.shows(str(path))
        )
    return found


_NO_LIMIT = 2**62


def known_path(database: Database, path: str) -> str:
    """Return the spelling of this depot path as it was first submitted."""
    if not case.is_ignored():
        return path
    row = database.execute(
        "SELECT path FROM revisions WHERE path=?1"
        " UNION ALL SELECT path FROM opened WHERE path=?1 LIMIT 1",
        path,
    ).fetchone()
    return str(row[0]) if row else path


def find_head(database: Database, *, path: str) -> Revision | None:
    """Return the newest revision of a depot file; None if it never existed."""
    row = database.execute(
        f"SELECT {REVISION_COLUMNS} FROM revisions WHERE path=?"
        " ORDER BY revision DESC LIMIT 1",
        path,
    ).fetchone()
    return Revision._make(row) if row else None


def find_revision(database: Database, *, path: str, number: int) -> Revision | None:
    row = database.execute(
        f"SELECT {REVISION_COLUMNS} FROM revisions WHERE path=? AND revision=?",
        path,
        number,
    ).fetchone()
    return Revision._make(row) if row else None
