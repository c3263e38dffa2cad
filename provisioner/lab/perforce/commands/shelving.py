"""p4 shelve."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.changeforms import (
    check_owner,
    form_files,
    insert_pending,
    may_force,
    move_files,
)
from provisioner.lab.perforce.commands.changes import opened_in
from provisioner.lab.perforce.commands.forms import read_form
from provisioner.lab.perforce.commands.intake import Sent, take_content
from provisioner.lab.perforce.commands.opening import check_writeable
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.integrations import resolves_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.replication import publish_shelf
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.shelves import (
    Shelved,
    drop_shelved,
    put_shelved,
    shelf_of,
)
from provisioner.lab.perforce.specs import CHANGE


def shelve(request: Request) -> None:
    """Answer `p4 shelve`: store opened files in a change, or delete a shelf."""
    if request.has("d"):
        _delete_shelf(request)
        return
    if request.has("p") and not request.state.config.follows_and_binds:
        raise NotInLab("p4 shelve -p at a server that is no edge of another one")
    client = request.get_client()
    check_writeable(client)
    change = _change_to_shelve(request, client)
    opened = [item for item in opened_in(request, change) if _is_named(request, item)]
    if not opened:
        raise CommandError(7574)
    _check_may_shelve(request, client, change, opened)
    if not request.is_tagged:
        request.say(7569, change=change)
    sent = take_content(request, client, change, opened)
    _store(request, change, opened, sent)
    if request.state.config.follows_and_binds:
        publish_shelf(request.state, change=change, promotes=request.has("p"))
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
    request.say(7580, change=f"Change {change}")


def _check_may_shelve(
    request: Request, client: Client, change: int, opened: list[Opened]
) -> None:
    """Refuse to overwrite a shelf without -f, and unresolved files.

    Raises: CommandError.
    """
    known = {item.path for item in shelf_of(request.state.database, change=change)}
    if not (request.has("f") or request.has("r")):
        for item in opened:
            if item.path in known:
                raise CommandError(6656, depotFile=item.path)
    named = {item.path for item in opened}
    for origin in resolves_of(request.state.database, client=client.name):
        if origin.path in named and not origin.how:
            raise CommandError(
                6764, depotFile=origin.path, file=origin.other, srev=origin.revisions
            )


def _change_to_shelve(request: Request, client: Client) -> int:
    """Return the pending change of this user and client for the shelf.

    Raises: CommandError.
    """
    if not request.has("i"):
        if not request.has("c"):
            raise CommandError(7198, usage=_USAGE)
        return _own_change(request, request.options["c"])
    fields = read_form(request, CHANGE)
    if str(fields.get("Change", "new")) != "new":
        return _own_change(request, str(fields["Change"]))
    database = request.state.database
    with database.writing():
        change = database.next_change()
        insert_pending(request, change, description=str(fields.get("Description", "")))
        move_files(request, client.name, form_files(fields), 0, change)
    return change


def _own_change(request: Request, text: str) -> int:
    change, user, client = find_pending(request, text)
    check_owner(request, f"Change {change}", user=user, client=client)
    return change


def find_pending(request: Request, text: str) -> tuple[int, str, str]:
    """Return a pending change's number, user and client.

    Raises: CommandError if there is none of this number.
    """
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            "SELECT user, client FROM changes WHERE change=? AND status='pending'",
            int(text),
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    return int(text), str(row[0]), str(row[1])


def _is_named(request: Request, item: Opened) -> bool:
    sets = [parse_file_argument(request, argument) for argument in request.args]
    return not sets or any(
        files.has_file(path=item.path, client_path=item.client_path) for files in sets
    )


def _store(
    request: Request, change: int, opened: list[Opened], sent: dict[str, Sent]
) -> None:
    nothing = Sent(digest="", size=0, modified=0)
    database = request.state.database

    def shelved(item: Opened) -> Shelved:
        content = sent.get(item.path, nothing)
        return Shelved(
            change,
            item.path,
            item.revision,
            item.action,
            item.type,
            content.modified,
            content.digest,
            content.size,
        )

    named = {item.path for item in opened}
    with database.writing():
        if request.has("r"):
            drop_shelved(database, shelf_of(database, change=change))
        origins = resolves_of(database, client=request.client_name)
        put_shelved(
            database,
            map(shelved, opened),
            origins=[origin for origin in origins if origin.path in named],
        )


def _delete_shelf(request: Request) -> None:
    change, user, client = find_pending(request, request.options.get("c", ""))
    if not may_force(request):
        check_owner(request, f"Change {change}", user=user, client=client)
    shelf = shelf_of(request.state.database, change=change)
    chosen = chosen_of(request, shelf)
    if not chosen:
        raise CommandError(7579)
    with request.state.database.writing():
        drop_shelved(request.state.database, chosen)
    if request.state.config.follows_and_binds:
        publish_shelf(request.state, change=change, promotes=False)
    request.say(7576, change=change, count=len(shelf) - len(chosen) or "")


def chosen_of(request: Request, shelf: Iterable[Shelved]) -> list[Shelved]:
    """Return the files of a shelf that the arguments name; without any, all."""
    if not request.args:
        return list(shelf)
    sets = [parse_file_argument(request, argument) for argument in request.args]
    return [item for item in shelf if _is_in(sets, item.path)]


def _is_in(sets: list[FileSet], path: str) -> bool:
    return any(files.has_depot_path(path) for files in sets)


_USAGE = "shelve [-p] -c change [-f] [-r] [file...] | -i | -d -c change [-f] [file...]"

COMMANDS = (
    Command(
        names=("shelve",),
        run=shelve,
        usage=_USAGE,
        flags="dfrip",
        valued="c",
        absent="aA",
        long=("parallel",),
        uses_client=True,
    ),
)
