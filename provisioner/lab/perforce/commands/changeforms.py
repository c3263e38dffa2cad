"""p4 change: the form of a change."""

from __future__ import annotations

import os.path
import time

from provisioner.lab.perforce.commands.changes import (
    find_change,
    has_shelf,
    opened_in,
    submitted_revisions,
)
from provisioner.lab.perforce.commands.forms import (
    form_date,
    read_form,
    refused,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.fixes import change_fixes, fixes_of
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import CHANGE, Fields
from provisioner.lab.perforce.views import split_words


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
    number, status, user, client, when, kind, text, _ = find_change(
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
    fixes = fixes_of(request.state.database, change=int(str(number)))
    if fixes:
        fields["Jobs"] = [f"{fix.job}\t# {fix.status}" for fix in fixes]
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


def form_jobs(fields: Fields) -> list[str]:
    """Return the jobs in a change form."""
    lines = fields.get("Jobs", [])
    assert isinstance(lines, list)
    return [words[0] for line in lines if (words := split_words(line))]


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
        fixed, _ = change_fixes(request, number, form_jobs(fields))
    request.say(
        6344,
        change=f"Change {number}",
        workCount=moved or "",
        jobCount=fixed or "",
    )


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
    row = find_change(request, text)
    number, status, user, client = int(str(row[0])), row[1], row[2], str(row[3])
    is_forced = may_force(request)
    if status == "submitted" and not is_forced:
        raise CommandError(6208, change=number)
    if user != request.user and not is_forced:
        raise CommandError(6718, change=f"Change {number}", user=str(user))
    added = removed = fixed = unfixed = 0
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
            fixed, unfixed = change_fixes(request, number, form_jobs(fields))
    request.say(
        6345,
        change=f"Change {number}",
        workCount=added or "",
        workCount2=removed or "",
        jobCount=fixed or "",
        jobCount2=unfixed or "",
    )


def _delete(request: Request) -> None:
    if not request.args:
        raise CommandError(7198, usage=_CHANGE_USAGE)
    row = find_change(request, request.args[0])
    number, status, user, client = int(str(row[0])), row[1], row[2], row[3]
    label = f"Change {number}"
    is_forced = may_force(request)
    if not is_forced:
        check_owner(request, label, user=str(user), client=str(client))
    files = opened_in(request, number)
    if files:
        raise CommandError(6346, change=label, count=len(files))
    if status == "submitted":
        count = len(submitted_revisions(request, number))
        if count or not is_forced:
            raise CommandError(6348, change=label, count=count)
    if has_shelf(request, number):
        raise CommandError(6661, change=label)
    fixes = fixes_of(request.state.database, change=number)
    if fixes:
        raise CommandError(6347, change=label, count=len(fixes))
    with request.state.database.writing():
        request.state.database.execute("DELETE FROM changes WHERE change=?", number)
    request.say(6349, change=label)


def may_force(request: Request) -> bool:
    """Return whether `-f` was given by somebody who may use it.

    Raises: CommandError if anybody else gave it.
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
    """Return the common path of a change's files, as `changes` shows it."""
    directories = {os.path.dirname(path) for path in files}
    if len(directories) == 1:
        return f"{directories.pop()}/*"
    return os.path.commonpath([path[1:] for path in files]).join(("/", "/..."))


_CHANGE_USAGE = "change -o [number] | -i [-f] | -d [-f] number"


COMMANDS = (
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
