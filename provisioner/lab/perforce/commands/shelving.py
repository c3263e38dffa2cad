"""p4 shelve, unshelve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.changes import (
    form_files,
    insert_pending,
    move_files,
    opened_in,
)
from provisioner.lab.perforce.commands.forms import read_form
from provisioner.lab.perforce.commands.intake import Sent, take_content
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    insert_opened,
    target_change,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import send_file
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.holdings import Opened, find_have, opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision
from provisioner.lab.perforce.specs import CHANGE
from provisioner.lab.perforce.wire import Value


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


def shelf_of(request: Request, change: int) -> list[Shelved]:
    """Return the files shelved in a change, by path."""
    rows = request.state.database.rows(
        "SELECT change, path, revision, action, type, modified, digest, size"
        " FROM shelved WHERE change=? ORDER BY path",
        change,
    )
    return [Shelved._make(row) for row in rows]


def shelve(request: Request) -> None:
    """Answer `p4 shelve`: store opened files in a change, or delete a shelf."""
    if request.has("d"):
        _delete_shelf(request)
        return
    client = request.get_client()
    check_writeable(client)
    change = _change_to_shelve(request, client)
    opened = [item for item in opened_in(request, change) if _is_named(request, item)]
    if not opened:
        raise CommandError(7214)
    known = {item.path for item in shelf_of(request, change)}
    if not (request.has("f") or request.has("r")):
        for item in opened:
            if item.path in known:
                raise CommandError(6656, depotFile=item.path)
    sent = take_content(request, client, change, opened)
    _store(request, change, opened, sent)
    for item in opened:
        request.report(
            {
                "change": change,
                "depotFile": item.path,
                "rev": item.revision or 1,
                "action": item.action,
            },
            6479,
            action=item.action,
            depotFile=item.path,
            depotRev=f"#{item.revision or 1}",
        )
    request.info(f"Change {change} files shelved.")


def _change_to_shelve(request: Request, client: Client) -> int:
    if not request.has("i"):
        change = target_change(request)
        if not change:
            raise CommandError(7198, usage=_USAGE)
        return change
    fields = read_form(request, CHANGE)
    if str(fields.get("Change", "new")) != "new":
        return int(str(fields["Change"]))
    database = request.state.database
    with database.writing():
        change = database.next_change()
        insert_pending(request, change, description=str(fields.get("Description", "")))
        move_files(request, client.name, form_files(fields), 0, change)
    return change


def _is_named(request: Request, item: Opened) -> bool:
    sets = [parse_file_argument(request, argument) for argument in request.args]
    return not sets or any(
        files.has_file(path=item.path, client_path=item.client_path) for files in sets
    )


def _store(
    request: Request, change: int, opened: list[Opened], sent: dict[str, Sent]
) -> None:
    empty = Sent(digest="", size=0, modified=0)
    database = request.state.database
    with database.writing():
        if request.has("r"):
            database.execute("DELETE FROM shelved WHERE change=?", change)
        database.execute_many(
            "INSERT OR REPLACE INTO shelved VALUES (?,?,?,?,?,?,?,?)",
            (
                Shelved(
                    change,
                    item.path,
                    item.revision,
                    item.action,
                    item.type,
                    sent.get(item.path, empty).modified,
                    sent.get(item.path, empty).digest,
                    sent.get(item.path, empty).size,
                )
                for item in opened
            ),
        )


def _delete_shelf(request: Request) -> None:
    change = _shelf_number(request, "c")
    user = request.state.database.execute(
        "SELECT user FROM changes WHERE change=?", change
    ).fetchone()[0]
    is_forced = request.has("f") and request.state.is_super(request.user)
    if user != request.user and not is_forced:
        raise CommandError(6185)
    chosen = _chosen(request, shelf_of(request, change))
    if not chosen:
        raise CommandError(7579)
    with request.state.database.writing():
        request.state.database.execute_many(
            "DELETE FROM shelved WHERE change=? AND path=?",
            ((item.change, item.path) for item in chosen),
        )
    request.info(f"Shelved change {change} deleted.")


def _shelf_number(request: Request, option: str) -> int:
    text = request.options.get(option, "")
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            "SELECT 1 FROM changes WHERE change=?", int(text)
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    return int(text)


def _chosen(request: Request, shelf: Iterable[Shelved]) -> list[Shelved]:
    """Return the files of a shelf that the arguments name; all without any."""
    if not request.args:
        return list(shelf)
    sets = [parse_file_argument(request, argument) for argument in request.args]
    return [item for item in shelf if _is_in(sets, item.path)]


def _is_in(sets: list[FileSet], path: str) -> bool:
    return any(files.has_depot_path(path) for files in sets)


# What a file took from another one is not shelved with it.
_PLAIN = {
    "move/add": "add",
    "move/delete": "delete",
    "branch": "add",
    "integrate": "edit",
}


def unshelve(request: Request) -> None:
    """Answer `p4 unshelve`: open the files of a shelf with its content."""
    client = request.get_client()
    check_writeable(client)
    source = _shelf_number(request, "s")
    shelf = _chosen(request, shelf_of(request, source))
    if not shelf:
        request.say(6660, argc=" ".join(request.args))
        return
    change = target_change(request)
    busy = opened_by(request.state.database, client=client.name)
    opened = []
    for shelved in shelf:
        item = shelved._replace(action=_PLAIN.get(shelved.action, shelved.action))
        place = client.view.to_client(item.path)
        if place is None:
            request.say(6511, argc=item.path)
        elif item.path in busy and not request.has("f"):
            request.info(
                f"{item.path} - can't unshelve (already opened for"
                f" {busy[item.path].action})"
            )
        else:
            opened.append(_unshelve_one(request, client, item, place, change))
    request.settle()
    if request.has("n"):
        return
    _record_have(request, client, opened)
    with request.state.database.writing():
        request.state.database.execute_many(
            "DELETE FROM opened WHERE client=? AND path=?",
            ((item.client, item.path) for item in opened),
        )
    insert_opened(request, opened)


def _unshelve_one(
    request: Request, client: Client, item: Shelved, place: str, change: int
) -> Opened:
    local = client.local_path(place)
    number = item.revision or 1
    record: dict[str, Value] = {
        "depotFile": item.path,
        "clientFile": local,
        "rev": number,
        "action": item.action,
    }
    if request.is_tagged:
        request.record(record)
    else:
        request.info(f"{item.path}#{number} - unshelved, opened for {item.action}")
    if item.action != "delete" and not request.has("n"):
        revision = Revision(
            item.path,
            item.revision,
            item.change,
            item.action,
            item.type,
            item.modified,
            item.modified,
            item.digest,
            item.size,
        )
        send_file(
            request,
            client,
            revision,
            local=local,
            confirm={},
            clobber=request.has("f") or bool(item.revision),
            writable=True,
        )
    return Opened(
        client.name,
        item.path,
        place,
        item.revision,
        item.action,
        item.type,
        request.user,
        change,
    )


def _record_have(request: Request, client: Client, opened: list[Opened]) -> None:
    """Let the client have the revisions that the files were opened at."""
    database = request.state.database
    missing = [
        item
        for item in opened
        if item.revision
        and find_have(database, client=client.name, path=item.path) is None
    ]
    with database.writing():
        database.execute_many(
            "INSERT OR IGNORE INTO have VALUES (?,?,?,?,0)",
            ((client.name, i.path, i.client_path, i.revision) for i in missing),
        )


_USAGE = "shelve -c change [-f] [-r] [file...] | -i | -d -c change [-f] [file...]"

COMMANDS = (
    Command(
        names=("shelve",),
        run=shelve,
        usage=_USAGE,
        flags="dfri",
        valued="c",
        absent="apA",
        uses_client=True,
    ),
    Command(
        names=("unshelve",),
        run=unshelve,
        usage="unshelve -s change [-f -n] [-c change] [file...]",
        flags="fn",
        valued="sc",
        absent="bSPA",
        uses_client=True,
    ),
)
