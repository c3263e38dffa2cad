"""File arguments: from what a person typed to a set of depot files at a revision."""

from __future__ import annotations

import calendar
import os.path
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from provisioner.lab.perforce import case, paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.paths import RevisionEnd, RevisionSpec
from provisioner.lab.perforce.protections import Access
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import find_spec
from provisioner.lab.perforce.state import touch_client

PointKind = Literal[
    "head", "none", "number", "change", "date", "client", "label", "shelf"
]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A revision specifier with its name looked up."""

    kind: PointKind
    number: int = 0
    name: str = ""


HEAD = Point(kind="head")

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
    """The files that one argument names, as a pattern over depot or client paths."""

    typed: str
    pattern: str
    in_client_syntax: bool
    client: Client | None
    lower: Point | None
    upper: Point
    # What the asking user may do; None when nothing is hidden from them.
    access: Access | None
    # What they must be allowed to do with a file that is in the set.
    level: str = "read"
    # Of a relative specifier, what is said when nothing is above or below it.
    nothing_beyond: int | None = None

    def shows(self, path: str) -> bool:
        """Return whether the user may see a depot file."""
        return self.access is None or self.access.allows(self.level, path)

    @property
    def nothing_found(self) -> int:
        """Return the number of the warning for "nothing at that revision"."""
        return self.nothing_beyond or _NOTHING_AT[self.upper.kind]

    @property
    def prefixes(self) -> list[str]:
        """Return depot prefixes that cover the set."""
        if not self.in_client_syntax:
            return [paths.literal_prefix(self.pattern)]
        assert self.client is not None
        return self.client.view.depot_prefixes(self.pattern)

    @property
    def is_whole_client(self) -> bool:
        return self.client is not None and case.same(
            self.pattern, self.client.everything
        )

    def has_depot_path(self, path: str) -> bool:
        """Return whether a depot file belongs to the set."""
        if not self.in_client_syntax:
            return paths.pattern_matches(self.pattern, path)
        assert self.client is not None
        return any(
            paths.pattern_matches(self.pattern, place)
            for place in self.client.view.all_to_client(path)
        )

    def has_file(self, *, path: str, client_path: str) -> bool:
        """Return whether a file that the client knows belongs to the set."""
        wanted = client_path if self.in_client_syntax else path
        return paths.pattern_matches(self.pattern, wanted)


def file_sets(request: Request, *, default: str | None = None) -> list[FileSet]:
    """Return the sets of a request's file arguments.

    Without arguments `default` is used, `""` meaning the whole client; None means that
    arguments are required.

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
    if len(paths.WILDCARD.findall(name)) > paths.MOST_WILDCARDS:
        raise CommandError(4175)
    pattern, client = _in_depot_or_client_syntax(request, name)
    lower, upper = _points(request, spec)
    return FileSet(
        typed=argument if typed is None else typed,
        pattern=pattern,
        in_client_syntax=client is not None,
        client=client,
        lower=lower,
        upper=upper,
        access=_limited_access(request),
        level="list" if request.command in _REPORTS else "read",
        nothing_beyond=_nothing_beyond(spec, lower or upper),
    )


# Commands that tell of files, not of their content: "list" is enough. Source: the
# minimal access levels in p4 help protections.
_REPORTS = frozenset(
    {"changes", "changelists", "dirs", "files", "filelog", "fstat", "have", "sizes"}
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
    if case.same(top, request.client_name) and not _is_depot(request, top):
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


def _points(request: Request, spec: RevisionSpec) -> tuple[Point | None, Point]:
    """Return the lower end of a specifier, None without a range, and the upper one.

    Of several the first one is the lower end, unless it says otherwise.

    Source: "Relative revisions" of "p4 help undoc".
    """
    if not spec.ends:
        return None, HEAD
    if len(spec.ends) == 1 and not spec.ends[0].relation:
        return None, _point(request, spec.ends[0])
    lower, upper = list[Point](), list[Point]()
    for index, end in enumerate(spec.ends):
        relation = end.relation or ("<=" if index else ">=")
        point = _related(request, end, relation)
        is_whole = relation == "=" and point.kind in ("head", "shelf")
        if relation[0] in "=>" and not is_whole:
            lower.append(point)
        if relation[0] in "=<":
            upper.append(point)
    return _of_several(max, spec, lower), _of_several(min, spec, upper) or HEAD


def _related(request: Request, end: RevisionEnd, relation: str) -> Point:
    """Return the point of `@>n` or `@<n`, or that of any other specifier.

    Raises: CommandError 6247 beyond the head, NotInLab for points without numbers.
    """
    if relation == "=" and end.sign == "@" and end.value.isdecimal():
        return _exactly(request, int(end.value))
    point = _point(request, end)
    if point.kind == "head" and relation not in ("=", "<=") and end.relation:
        raise CommandError(6247, rev=f"#{end.value}")
    if not end.relation or point.kind in ("head", "shelf"):
        return point
    if point.kind not in _BEYOND:
        raise NotInLab(f"{end} of a {point.kind}")
    away = {">": 1, "<": -1}.get(relation, 0)
    return replace(point, number=point.number + away)


def _of_several(
    choose: Callable[..., Point], spec: RevisionSpec, points: list[Point]
) -> Point | None:
    """Return the narrowest of points of one kind; None for none.

    Raises: NotInLab.
    """
    if len({point.kind for point in points}) > 1:
        raise NotInLab(f"the range {spec}")
    return choose(points, key=lambda point: point.number) if points else None


# What is said when nothing is above a point, and when nothing is below it.
_BEYOND = {"change": (6533, 6544), "date": (6534, 6545), "number": (6537, 6548)}


def _nothing_beyond(spec: RevisionSpec, point: Point) -> int | None:
    if len(spec.ends) != 1 or not spec.ends[0].relation or point.kind not in _BEYOND:
        return None
    relation = spec.ends[0].relation
    return None if relation == "=" else _BEYOND[point.kind][relation.startswith("<")]


_DATE = re.compile(r"(\d{4})/(\d\d?)/(\d\d?)(?:[: ](\d\d?):(\d\d)(?::(\d\d))?)?")


def _point(request: Request, end: RevisionEnd) -> Point:
    """Look up one end of a revision specifier.

    Raises: CommandError 6245 if it names nothing.
    """
    value = end.value
    if end.sign == "#":
        return _number_point(request, value)
    if value.isdecimal():
        return Point(kind="change", number=int(value))
    if value == "now":
        return Point(kind="date", number=int(time.time()))
    match = _DATE.fullmatch(value)
    if match:
        return Point(kind="date", number=_seconds(match))
    database = request.state.database
    if find_spec(database, kind="client", name=value) is not None:
        touch_client(request.state, name=value)
        return Point(kind="client", name=value)
    label = find_spec(database, kind="label", name=value)
    if label is not None:
        revision = label.text("Revision").strip('"')
        # A label that stands for a revision has no list of its own.
        if revision[:1] in ("@", "#") and revision[1:] != value:
            return _point(request, RevisionEnd(revision[0], revision[1:]))
        return Point(kind="label", name=value)
    raise CommandError(6245, arg=value)


def _exactly(request: Request, change: int) -> Point:
    """Return what `@=change` names: a shelf, or what a submitted change made."""
    row = request.state.database.execute(
        "SELECT 1 FROM changes WHERE change=? AND status='submitted'", change
    ).fetchone()
    return Point(kind="change" if row else "shelf", number=change)


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
