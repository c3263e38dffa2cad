"""p4 changes, describe, change."""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

import itertools
import os.path
import time

from provisioner.lab.perforce.commands.forms import (
    day,
    form_date,
    read_form,
    refused,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.textdiffs import diff_style, show_difference
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import OPENED_COLUMNS, Opened
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    REVISION_COLUMNS,
    Revision,
    changes_in,
    find_revision,
)
from provisioner.lab.perforce.specs import CHANGE, Fields
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


def _count_scanned(request: Request, *, last: int | None) -> int:
    """Return how many rows a list reads that ends with the change `last`.

    Pending changes have a table of their own, db.changex; all others are read in the
    order of their numbers.

    Source: https://www.perforce.com/perforce/doc.current/schema/
    """
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
    if _has_shelf(request, int(str(change))):
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


def _has_shelf(request: Request, change: int) -> bool:
    query = "SELECT 1 FROM shelved WHERE change=? LIMIT 1"
    return request.state.database.execute(query, change).fetchone() is not None


def describe(request: Request) -> None:
    """Answer `p4 describe`: of pending changes without differences."""
    if not request.args:
        raise CommandError(7198, usage="describe [-d<flags> -s -S] change...")
    style = diff_style(request)
    for text in request.args:
        row = _find_change(request, text)
        made: list[Revision] = []
        if request.has("S"):
            made = _shelved_revisions(request, row[0])
            _describe(request, row, [_file_record(each) for each in made])
        elif row[1] == "submitted":
            made = _submitted_revisions(request, row[0])
            _describe(request, row, [_file_record(each) for each in made])
        else:
            _describe(request, row, _pending_files(request, row[0]))
        if made and not request.has("s"):
            _show_differences(request, made, style)


def _find_change(request: Request, text: str) -> tuple[object, ...]:
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            f"SELECT {_COLUMNS} FROM changes WHERE change=?", int(text)
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    return tuple(row)


def _submitted_revisions(request: Request, change: object) -> list[Revision]:
    rows = request.state.database.rows(
        f"SELECT {REVISION_COLUMNS} FROM revisions WHERE change=? ORDER BY path", change
    )
    return [Revision._make(row) for row in rows]


def _file_record(revision: Revision) -> dict[str, Value]:
    record: dict[str, Value] = {
        "depotFile": revision.path,
        "action": revision.action,
        "type": revision.type,
        "rev": revision.revision,
    }
    if not revision.is_deleted:
        record |= {"fileSize": revision.size, "digest": revision.digest}
    return record


def _shelved_revisions(request: Request, change: object) -> list[Revision]:
    """Return the files of a shelf as revisions; their numbers are those they had."""
    rows = request.state.database.rows(
        "SELECT path, revision, change, action, type, modified, modified, digest, size"
        " FROM shelved WHERE change=? ORDER BY path",
        change,
    )
    return [Revision._make(row) for row in rows]


def _show_differences(request: Request, made: list[Revision], style: str) -> None:
    """Show what each revision changed; what is new or gone has no difference.

    That a tagged client gets the same lines and texts is inferred.
    """
    if not request.is_tagged:
        request.say(7273)
    for new in made:
        is_shelved = request.has("S")
        old = find_revision(
            request.state.database,
            path=new.path,
            number=new.revision if is_shelved else new.revision - 1,
        )
        if old is None or old.is_deleted or new.is_deleted:
            continue
        request.say(
            6362,
            depotFile=new.path,
            depotRev=f"#{new.revision}",
            type=old.type,
            type2="" if new.type == old.type else new.type,
        )
        if new.digest != old.digest:
            show_difference(request, old, new, style=style)


def _pending_files(request: Request, change: object) -> list[dict[str, Value]]:
    return [
        {
            "depotFile": item.path,
            "action": item.action,
            "type": item.type,
            "rev": item.revision or 1,
        }
        for item in opened_in(request, int(str(change)))
    ]


def opened_in(request: Request, change: int) -> list[Opened]:
    """Return the files opened in a numbered change, by path."""
    rows = request.state.database.rows(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE change=? ORDER BY path", change
    )
    return [Opened._make(row) for row in rows]


def _describe(
    request: Request, row: tuple[object, ...], files: list[dict[str, Value]]
) -> None:
    change, status, user, client, when, kind, description, path = (
        str(value) for value in row
    )
    if not request.is_tagged:
        request.say(
            6360 if status == "pending" else 6359,
            change=f"Change {change}",
            user=user,
            client=client,
            date=form_date(int(when)),
            description="\n\n\t"
            + description.rstrip("\n").replace("\n", "\n\t")
            + "\n",
        )
        request.say(7577 if request.has("S") else 7272)
        request.info("")
        for file in files:
            request.say(
                6361,
                depotFile=file["depotFile"],
                depotRev=f"#{file['rev']!s}",
                action=file["action"],
            )
        return
    record: dict[str, Value] = {
        "change": change,
        "user": user,
        "client": client,
        "time": when,
        "desc": description,
        "status": status,
        "changeType": kind,
    }
    if path:
        record["path"] = path
    if _has_shelf(request, int(change)):
        record["shelved"] = ""
    for index, file in enumerate(files):
        record |= {f"{key}{index}": value for key, value in file.items()}
    request.record(record)


# --- the change form


def change(request: Request) -> None:
    """Answer `p4 change -o`, `-i` and `-d`."""
    if request.has("o"):
        _show(request)
    elif request.has("i"):
        _save(request)
    elif request.has("d"):
        _delete(request)
    else:
        raise CommandError(7198, usage=_CHANGE_USAGE)


def _show(request: Request) -> None:
    if not request.args:
        request.show_form(new_change_form(request), definition=CHANGE)
        return
    number, status, user, client, when, kind, text, _ = _find_change(
        request, request.args[0]
    )
    fields: Fields = {
        "Change": str(number),
        "Date": form_date(int(str(when))),
        "Client": str(client),
        "User": str(user),
        "Status": str(status),
        "Type": str(kind),
        "Description": str(text),
    }
    if status == "pending":
        fields["Files"] = [
            f"{item.path}\t# {item.action}"
            for item in opened_in(request, int(str(number)))
        ]
    request.show_form(fields, definition=CHANGE)


def new_change_form(request: Request) -> Fields:
    """Return the form of a change that does not exist yet."""
    rows = request.state.database.rows(
        "SELECT path, action FROM opened WHERE client=? AND change=0 ORDER BY path",
        request.client_name,
    )
    return {
        "Change": "new",
        "Client": request.client_name,
        "User": request.user,
        "Status": "new",
        "Description": "<enter description here>\n",
        "Files": [f"{path}\t# {action}" for path, action in rows],
    }


def form_files(fields: Fields) -> list[str]:
    """Return the depot paths in a change form."""
    lines = fields.get("Files", [])
    assert isinstance(lines, list)
    return [line.split("\t")[0].split(" # ")[0].strip().strip('"') for line in lines]


def _save(request: Request) -> None:
    fields = read_form(request, CHANGE)
    description = fields.get("Description", "")
    assert isinstance(description, str)
    if not description.strip():
        raise refused("change", "Change description missing.  You must enter one.")
    number = str(fields.get("Change", "new"))
    if number == "new":
        _create(request, fields, description)
    else:
        _update(request, number, fields, description)


def _create(request: Request, fields: Fields, description: str) -> None:
    client = request.get_client()
    database = request.state.database
    with database.writing():
        number = database.next_change()
        insert_pending(request, number, description=description)
        moved = move_files(request, client.name, form_files(fields), 0, number)
    request.say(6344, change=f"Change {number}", workCount=moved or "", jobCount="")


def insert_pending(request: Request, number: int, *, description: str) -> None:
    """Insert a new pending change; only inside `writing`."""
    request.state.database.execute(
        "INSERT INTO changes VALUES (?,'pending',?,?,?,'public',?,'')",
        number,
        request.user,
        request.client_name,
        int(time.time()),
        description,
    )


def move_files(
    request: Request, client: str, files: list[str], old: int, new: int
) -> int:
    """Move opened files from one change to another; return how many there were."""
    moved = 0
    for path in files:
        moved += request.state.database.execute(
            "UPDATE opened SET change=? WHERE client=? AND path=? AND change=?",
            new,
            client,
            path,
            old,
        ).rowcount
    return moved


def _update(request: Request, text: str, fields: Fields, description: str) -> None:
    row = _find_change(request, text)
    number, status, user, client = int(str(row[0])), row[1], row[2], str(row[3])
    is_forced = may_force(request)
    if status == "submitted" and not is_forced:
        raise CommandError(6208, change=number)
    if user != request.user and not is_forced:
        raise CommandError(6718, change=f"Change {number}", user=str(user))
    added = removed = 0
    database = request.state.database
    with database.writing():
        database.execute(
            "UPDATE changes SET description=? WHERE change=?", description, number
        )
        if status == "pending":
            wanted = set(form_files(fields))
            current = {item.path for item in opened_in(request, number)}
            added = move_files(request, client, sorted(wanted - current), 0, number)
            gone = sorted(current - wanted)
            removed = move_files(request, client, gone, number, 0)
    request.say(
        6345,
        change=f"Change {number}",
        workCount=added or "",
        workCount2=removed or "",
        jobCount="",
        jobCount2="",
    )


def _delete(request: Request) -> None:
    if not request.args:
        raise CommandError(7198, usage=_CHANGE_USAGE)
    row = _find_change(request, request.args[0])
    number, status, user, client = int(str(row[0])), row[1], row[2], row[3]
    label = f"Change {number}"
    is_forced = may_force(request)
    if not is_forced:
        check_owner(request, label, user=str(user), client=str(client))
    files = opened_in(request, number)
    if files:
        raise CommandError(6346, change=label, count=len(files))
    if status == "submitted":
        count = len(_submitted_revisions(request, number))
        if count or not is_forced:
            raise CommandError(6348, change=label, count=count)
    if _has_shelf(request, number):
        raise CommandError(6661, change=label)
    with request.state.database.writing():
        request.state.database.execute("DELETE FROM changes WHERE change=?", number)
    request.say(6349, change=label)


def may_force(request: Request) -> bool:
    """Tell if `-f` was given, by who may.

    Raises: CommandError when it was given by somebody else.
    """
    if request.has("f") and not request.state.is_admin(request.user):
        raise CommandError(6185)
    return request.has("f")


def check_owner(request: Request, change: str, *, user: str, client: str) -> None:
    """Refuse what belongs to another user or client.

    Raises: CommandError.
    """
    if user != request.user:
        raise CommandError(6173, change=change, user=user)
    if client != request.client_name:
        raise CommandError(6172, change=change, client=client)


def common_path(files: list[str]) -> str:
    """Return what the files of a change have in common, as `changes` shows it."""
    directories = {os.path.dirname(path) for path in files}
    if len(directories) == 1:
        return f"{directories.pop()}/*"
    return os.path.commonpath([path[1:] for path in files]).join(("/", "/..."))


_CHANGES_USAGE = (
    "changes [-m max] [-s status] [-u user] [-c client] [-l|-L] [-t] [-r] [file...]"
)
_CHANGE_USAGE = "change -o [number] | -i [-f] | -d [-f] number"

COMMANDS = (
    Command(
        names=("changes", "changelists"),
        run=changes,
        usage=_CHANGES_USAGE,
        flags="lLtr",
        valued="msuce",
        absent="iS",
    ),
    Command(
        names=("describe",),
        run=describe,
        usage="describe [-d<flags> -s -S -f] change...",
        flags="sSf",
        valued="d",
        absent="aOIm",
    ),
    Command(
        names=("change", "changelist"),
        most_arguments=1,
        run=change,
        usage=_CHANGE_USAGE,
        flags="oidf",
        absent="sutUS",
        uses_client=True,
    ),
)
