"""p4 changes, and how a change is found."""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

import itertools

from provisioner.lab.perforce.commands.forms import (
    day,
    form_date,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import OPENED_COLUMNS, Opened
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    REVISION_COLUMNS,
    Revision,
    changes_in,
    revisions_in,
)
from provisioner.lab.perforce.wire import Value

_COLUMNS = "change, status, user, client, time, type, description, path"
_SHORT = 31


def changes(request: Request) -> None:
    """Answer `p4 changes`."""
    conditions, parameters = _conditions(request)
    if request.args:
        chosen: set[int] = set()
        for wanted in file_sets(request):
            chosen |= changes_in(request.state.database, wanted)
            chosen |= _pending_in(request, wanted)
    order = "ASC" if request.has("r") else "DESC"
    limit = request.number("m", default=0)
    rows = request.state.database.rows(
        f"SELECT {_COLUMNS} FROM changes{conditions} ORDER BY change {order}",
        *parameters,
    )
    wanted_rows = (row for row in rows if not request.args or row[0] in chosen)
    listed = list(itertools.islice(wanted_rows, limit or None))
    if request.is_limited:
        is_cut = len(listed) == limit
        last = int(str(listed[-1][0])) if listed and is_cut else None
        scanned = _count_scanned(request, last=last)
        request.check_limits(scanned=scanned, results=len(listed))
    for row in listed:
        _list_change(request, row)


def _pending_in(request: Request, wanted: FileSet) -> set[int]:
    """Return the pending changes with opened or shelved files of a set.

    Inferred from git's tests of git-p4, which look for shelves by path.
    """
    if wanted.lower is not None or wanted.upper.kind != "head":
        return set()
    rows = request.state.database.rows(
        "SELECT DISTINCT change, path FROM shelved UNION"
        " SELECT DISTINCT change, path FROM opened WHERE change>0"
    )
    return {
        int(str(change))
        for change, path in rows
        if wanted.has_depot_path(str(path)) and wanted.shows(str(path))
    }


def _count_scanned(request: Request, *, last: int | None) -> int:
    """Return how many rows are read for a list that ends with the change `last`.

    Pending changes have a table of their own, db.changex; all others are read in the
    order of their numbers. For a path its revisions are read, whatever `-m` says.

    Source: https://www.perforce.com/perforce/doc.current/schema/, and for paths git's
    t9818, which asks a server for `changes -m 1 //depot/...`.
    """
    if request.args:
        database = request.state.database
        sets = file_sets(request)
        return sum(1 for wanted in sets for _ in revisions_in(database, wanted))
    conditions, parameters = ["change>=?"], [request.number("e", default=0)]
    if request.options.get("s") in ("pending", "shelved"):
        conditions.append("status='pending'")
    if last is not None:
        conditions.append("change<=?" if request.has("r") else "change>=?")
        parameters.append(last)
    [(count,)] = request.state.database.rows(
        f"SELECT count(*) FROM changes WHERE {' AND '.join(conditions)}", *parameters
    )
    return int(str(count))


def _conditions(request: Request) -> tuple[str, list[object]]:
    conditions, parameters = [], list[object]()
    for option, column in (("u", "user"), ("c", "client")):
        if request.has(option):
            conditions.append(f"{column}=?")
            parameters.append(request.options[option])
    status = request.options.get("s")
    if status == "shelved":
        conditions.append("change IN (SELECT change FROM shelved)")
    elif status in ("pending", "submitted"):
        conditions.append("status=?")
        parameters.append(status)
    elif status is not None:
        raise CommandError(7198, usage=_CHANGES_USAGE)
    if request.has("e"):
        conditions.append("change>=?")
        parameters.append(request.number("e", default=0))
    return (" WHERE " + " AND ".join(conditions) if conditions else ""), parameters


def _list_change(request: Request, row: tuple[object, ...]) -> None:
    change, status, user, client, when, kind, description, path = row
    text = str(description)
    is_long = request.has("l") or request.has("L")
    if request.has("L"):
        text = text[:250]
    record: dict[str, Value] = {
        "change": str(change),
        "time": str(when),
        "user": str(user),
        "client": str(client),
        "status": str(status),
        "changeType": str(kind),
    }
    if path:
        record["path"] = str(path)
    if has_shelf(request, int(str(change))):
        record["shelved"] = ""
    record["desc"] = text if is_long else text[:_SHORT]
    pending = status == "pending"
    short = text[:_SHORT].replace("\n", " ").strip()
    shown = (
        "\n\n\t" + text.rstrip("\n").replace("\n", "\n\t") + "\n"
        if is_long
        else f" '{short}'"
    )
    moment = int(str(when))
    request.report(
        record,
        6351 if pending else 6350,
        change=f"Change {change}",
        date=form_date(moment) if request.has("t") else day(moment),
        user=str(user),
        client=str(client),
        description=shown,
    )


def has_shelf(request: Request, change: int) -> bool:
    query = "SELECT 1 FROM shelved WHERE change=? LIMIT 1"
    return request.state.database.execute(query, change).fetchone() is not None


def find_change(request: Request, text: str) -> tuple[object, ...]:
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            f"SELECT {_COLUMNS} FROM changes WHERE change=?", int(text)
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    return tuple(row)


def submitted_revisions(request: Request, change: object) -> list[Revision]:
    rows = request.state.database.rows(
        f"SELECT {REVISION_COLUMNS} FROM revisions WHERE change=? ORDER BY path", change
    )
    return [Revision._make(row) for row in rows]


def opened_in(request: Request, change: int) -> list[Opened]:
    """Return the files opened in a numbered change, by path."""
    rows = request.state.database.rows(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE change=? ORDER BY path", change
    )
    return [Opened._make(row) for row in rows]


_CHANGES_USAGE = (
    "changes [-m max] [-s status] [-u user] [-c client] [-l|-L] [-t] [-r] [file...]"
)


COMMANDS = (
    Command(
        names=("changes", "changelists"),
        run=changes,
        usage=_CHANGES_USAGE,
        flags="lLtr",
        valued="msuce",
        absent="iS",
    ),
)
