"""File arguments: from what a person typed to a set of depot files at a revision."""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

import calendar
import os.path
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from provisioner.lab.perforce import paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.paths import RevisionSpec
from provisioner.lab.perforce.protections import Access
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import find_spec, touch_spec


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
        return self.action in ("delete", "move/delete", "purge", "archive")


REVISION_COLUMNS = "path, revision, change, action, type, time, modified, digest, size"

PointKind = Literal[
    "head", "none", "number", "change", "date", "client", "label", "shelf"
]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A revision specifier with its name looked up."""

    kind: PointKind
    number: int = 0
    name: str = ""


# What to say when nothing is found at a revision of this kind.
_NOTHING_AT = {
    "head": 6519,
    "none": 6542,
    "number": 6542,
    "change": 6538,
    "date": 6539,
    "client": 6540,
    "label": 6541,
    "shelf": 6519,
}


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """The files one argument names, as a pattern over depot or client paths."""

    typed: str
    pattern: str
    in_client_syntax: bool
    client: Client | None
    lower: Point | None
    upper: Point
    # What the asking user may do; None when nothing is hidden from them.
    access: Access | None

    @property
    def nothing_found(self) -> int:
        """Return the number of the warning for "nothing at that revision"."""
        return _NOTHING_AT[self.upper.kind]

    @property
    def prefixes(self) -> list[str]:
        """Return depot prefixes that cover the set."""
        if not self.in_client_syntax:
            return [paths.literal_prefix(self.pattern)]
        assert self.client is not None
        return self.client.view.depot_prefixes(self.pattern)

    @property
    def is_whole_client(self) -> bool:
        return self.client is not None and self.pattern == self.client.everything

    def has_depot_path(self, path: str) -> bool:
        """Tell if a depot file belongs to the set."""
        if not self.in_client_syntax:
            return paths.pattern_matches(self.pattern, path)
        assert self.client is not None
        return any(
            paths.pattern_matches(self.pattern, place)
            for place in self.client.view.all_to_client(path)
        )

    def has_file(self, *, path: str, client_path: str) -> bool:
        """Tell if a file that is known to the client belongs to the set."""
        wanted = client_path if self.in_client_syntax else path
        return paths.pattern_matches(self.pattern, wanted)


def file_sets(request: Request, *, default: str | None = None) -> list[FileSet]:
    """Return the sets of a request's file arguments.

    Without arguments `default` is used, `""` meaning the whole client; None means
    that arguments are required.

    Raises: CommandError.
    """
    if request.args:
        return [parse_file_argument(request, argument) for argument in request.args]
    if default is None:
        raise CommandError(7198, usage=f"{request.command} files...")
    return [parse_file_argument(request, default, typed="")]


def parse_file_argument(
    request: Request, argument: str, *, typed: str | None = None
) -> FileSet:
    """Return the set one argument names.

    Raises: CommandError.
    """
    name, spec = paths.split_revision(argument)
    pattern, client = _in_depot_or_client_syntax(request, name)
    return FileSet(
        typed=argument if typed is None else typed,
        pattern=pattern,
        in_client_syntax=client is not None,
        client=client,
        lower=None if spec.lower is None else _point(request, spec.lower),
        upper=_upper_point(request, spec),
        access=_limited_access(request),
    )


def _limited_access(request: Request) -> Access | None:
    access = request.access()
    return None if access.reads_everything else access


def _in_depot_or_client_syntax(
    request: Request, name: str
) -> tuple[str, Client | None]:
    if name.startswith("//"):
        return _absolute(request, name)
    if request.find_client() is None and name:
        raise CommandError(6243, arg=name, client=request.client_name)
    client = request.get_client()
    if not name:
        return client.everything, client
    return client.from_local(local_argument(request, name)), client


def _absolute(request: Request, name: str) -> tuple[str, Client | None]:
    top = name[2:].partition("/")[0]
    if top == request.client_name and not _is_depot(request, top):
        client = request.get_client()
        return name, client
    if paths.has_wildcard(top) or _is_depot(request, top):
        return name, None
    raise CommandError(6244, path=name, client=request.client_name)


def _is_depot(request: Request, name: str) -> bool:
    return find_spec(request.state.database, kind="depot", name=name) is not None


def local_argument(request: Request, name: str) -> str:
    """Return a local argument as an absolute name, still escaped."""
    return os.path.normpath(os.path.join(paths.escape(request.cwd), name))


def _upper_point(request: Request, spec: RevisionSpec) -> Point:
    if spec.upper is None:
        return Point(kind="head")
    return _point(request, spec.upper)


_DATE = re.compile(r"(\d{4})/(\d\d?)/(\d\d?)(?:[: ](\d\d?):(\d\d)(?::(\d\d))?)?")


def _point(request: Request, endpoint: tuple[str, str]) -> Point:
    """Look up one end of a revision specifier.

    Raises: CommandError 6245 when it names nothing.
    """
    sign, value = endpoint
    if sign == "#":
        return _number_point(request, value)
    if value.isdecimal():
        return Point(kind="change", number=int(value))
    if value[0] == "=" and value[1:].isdecimal():
        return Point(kind="shelf", number=int(value[1:]))
    if value == "now":
        return Point(kind="date", number=int(time.time()))
    match = _DATE.fullmatch(value)
    if match:
        return Point(kind="date", number=_seconds(match))
    database = request.state.database
    if find_spec(database, kind="client", name=value) is not None:
        touch_spec(
            database,
            kind="client",
            name=value,
            granularity_seconds=request.state.config.client_access_granularity_seconds,
        )
        return Point(kind="client", name=value)
    if find_spec(database, kind="label", name=value) is not None:
        return Point(kind="label", name=value)
    raise CommandError(6245, arg=value)


def _number_point(request: Request, value: str) -> Point:
    if value == "head":
        return Point(kind="head")
    if value == "have":
        return Point(kind="client", name=request.client_name)
    if value == "none" or int(value) == 0:
        return Point(kind="none")
    return Point(kind="number", number=int(value))


def _seconds(match: re.Match[str]) -> int:
    fields = [int(part or 0) for part in match.groups()]
    try:
        calendar.timegm((*fields, 0, 0, 0))
        return int(time.mktime((*fields, 0, 0, -1)))  # type: ignore[arg-type]
    except (ValueError, OverflowError) as error:
        raise CommandError(6245, arg=match[0]) from error


# --- looking up revisions


def revisions_at(
    database: Database, files: FileSet, *, maps_itself: bool = False
) -> list[Revision]:
    """Return, by path, the one revision of each file at the set's upper point.

    Deleted revisions are there too. With a range, files whose latest revision up to
    the upper end lies before its lower end are left out. Who `maps_itself` puts each
    path through the view anyway; of a whole client it gets all that may be mapped.
    """
    found: list[Revision] = []
    for prefix in files.prefixes:
        revisions: Iterable[Revision] = map(
            Revision._make, _rows_at(database, files, prefix)
        )
        is_all = files.pattern == prefix + "..." and not files.in_client_syntax
        if not (is_all or (maps_itself and files.is_whole_client)):
            revisions = filter(lambda r: files.has_depot_path(r.path), revisions)
        if files.lower is not None:
            revisions = filter(lambda r: _is_above(r, files.lower), revisions)
        access = files.access
        if access is not None:
            revisions = [r for r in revisions if access.allows("read", r.path)]
        found.extend(revisions)
    return found


def _rows_at(
    database: Database, files: FileSet, prefix: str
) -> Iterable[tuple[Any, ...]]:
    point = files.upper
    span = (prefix, prefix + paths.AFTER_ALL)
    if point.kind == "none":
        return ()
    if point.kind in ("client", "label"):
        table = "have" if point.kind == "client" else "label_files"
        columns = ", ".join(f"r.{name}" for name in REVISION_COLUMNS.split(", "))
        return database.execute(
            f"SELECT {columns} FROM {table} h CROSS JOIN revisions r"
            f" ON r.path=h.path AND r.revision=h.revision"
            f" WHERE h.{'client' if table == 'have' else 'label'}=?"
            " AND h.path>=? AND h.path<?",
            point.name,
            *span,
        )
    if point.kind == "shelf":
        return database.execute(
            "SELECT path, max(revision, 1), change, action, type, modified, modified,"
            " digest, size FROM shelved WHERE change=? AND path>=? AND path<?",
            point.number,
            *span,
        )
    if point.kind == "number":
        return database.execute(
            f"SELECT {REVISION_COLUMNS} FROM revisions"
            " WHERE path>=? AND path<? AND revision=?",
            *span,
            point.number,
        )
    condition, limit = "", list[int]()
    if point.kind != "head":
        column = "change" if point.kind == "change" else "time"
        condition, limit = f" AND {column}<=?", [point.number]
    # With max(), SQLite takes the other columns from the row that has it.
    return database.execute(
        f"SELECT {REVISION_COLUMNS.replace('revision', 'max(revision)')}"
        f" FROM revisions WHERE path>=? AND path<?{condition} GROUP BY path",
        *span,
        *limit,
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
            if (is_all or files.has_depot_path(str(path)))
            and (files.access is None or files.access.allows("read", str(path)))
        )
    return found


_NO_LIMIT = 2**62


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


# --- what the client has and has opened


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
    def is_add(self) -> bool:
        return self.action in ("add", "move/add", "branch", "import")


OPENED_COLUMNS = "client, path, client_path, revision, action, type, user, change"


def have_list(database: Database, *, client: str) -> Iterator[Have]:
    """Yield a client's whole have list by depot path."""
    rows = database.execute(
        "SELECT path, client_path, revision, synced FROM have WHERE client=?"
        " ORDER BY path",
        client,
    )
    return map(Have._make, rows)


def have_in(database: Database, files: FileSet, *, client: str) -> Iterator[Have]:
    """Yield what a client has of a set, by depot path."""
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
    for have in map(Have._make, rows):
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


def opened_by(database: Database, *, client: str) -> dict[str, Opened]:
    """Return a client's opened files by depot path."""
    rows = database.execute(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE client=? ORDER BY path", client
    )
    return {row[1]: Opened._make(row) for row in rows}
