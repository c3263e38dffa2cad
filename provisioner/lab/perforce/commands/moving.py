"""p4 move: rename a file that is open for add or edit."""

from __future__ import annotations

from provisioner.lab.perforce import replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.integrate import one_line_view
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    target_change,
    wanted_type,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.integrations import Resolve, put_resolves
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_head, known_path


def move(request: Request) -> None:
    """Answer `p4 move`."""
    client = request.get_client()
    check_writeable(client)
    if len(request.args) != 2:
        raise CommandError(7198, usage=_USAGE)
    source, target = (parse_file_argument(request, text) for text in request.args)
    view = one_line_view(source, target)
    found = False
    for item in opened_by(request.state.database, client=client.name).values():
        if not source.has_file(path=item.path, client_path=item.client_path):
            continue
        found = True
        place = view.to_client(
            item.client_path if source.in_client_syntax else item.path
        )
        _move_one(request, client, item, _places(client, target, place))
    request.settle()
    if not found:
        request.say(6526, argc=source.typed)


def _places(
    client: Client, target: FileSet, place: str | None
) -> tuple[str | None, str | None]:
    """Return a target's depot path and client path."""
    if place is None:
        return None, None
    if target.in_client_syntax:
        return client.view.to_depot(place), place
    return place, client.view.to_client(place)


def _move_one(
    request: Request,
    client: Client,
    item: Opened,
    places: tuple[str | None, str | None],
) -> None:
    path, place = places
    database = request.state.database
    if path is None or place is None:
        request.say(6511, argc=request.args[1])
        return
    path = known_path(database, path)
    if not request.access().allows("open", path):
        request.say(6513, argc=request.args[1])
        return
    if item.action not in ("add", "edit", "move/add"):
        request.say(6632, depotFile=item.path, badAction=item.action)
        return
    head = find_head(database, path=path)
    if (head and not head.is_deleted) or path in opened_by(
        database, client=client.name
    ):
        request.say(6633, depotFile=path)
        return
    if not request.has("n"):
        _apply(request, client, item, path, place)
    request.report(
        {
            "toFile": path,
            "toRev": 1,
            "fromFile": item.path,
            "fromRev": item.revision or 1,
        },
        6631,
        toFile=path,
        toRev="#1",
        fromFile=item.path,
        fromRev=f"#{item.revision or 1}",
    )


def _apply(
    request: Request, client: Client, item: Opened, path: str, place: str
) -> None:
    if not request.has("k"):
        request.send(
            "client-MoveFile",
            {
                "path": client.local_path(item.client_path),
                "path2": client.local_path(place),
                "confirm": replies.MOVED,
                "rmdir": "preserveCWD",
                **({"force": ""} if request.has("f") else {}),
            },
        )
    change = target_change(request) if request.has("c") else item.change
    is_new = item.action == "add"
    moved = item._replace(
        path=path,
        client_path=place,
        revision=0,
        action="add" if is_new else "move/add",
        type=wanted_type(request, item.type),
        change=change,
    )
    database = request.state.database
    insert = "INSERT OR REPLACE INTO opened VALUES (?,?,?,?,?,?,?,?)"
    with database.writing():
        database.execute(insert, *moved)
        if item.action == "edit":
            gone = item._replace(action="move/delete", change=change)
            database.execute(insert, *gone)
            origin = Resolve(
                *(client.name, path, item.path, 0, item.revision),
                *(item.path, item.revision, "moved from"),
            )
            put_resolves(database, [origin])
            return
        database.execute(
            "DELETE FROM opened WHERE client=? AND path=?", client.name, item.path
        )
        # A file that was moved before keeps its first origin.
        database.execute(
            "UPDATE resolves SET path=? WHERE client=? AND path=?",
            *(path, client.name, item.path),
        )


_USAGE = "move [-f -k -n] [-c change] [-t type] from to"

COMMANDS = (
    Command(
        names=("move", "rename"),
        run=move,
        usage=_USAGE,
        flags="fkn",
        valued="ct",
        absent="r",
        uses_client=True,
    ),
)
