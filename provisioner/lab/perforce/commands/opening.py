"""p4 add, edit, delete."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.lab.perforce import case, filetypes, paths, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.locking import lock_holders
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file
from provisioner.lab.perforce.commands.tables import mapped_type
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.filespec import file_sets, local_argument
from provisioner.lab.perforce.holdings import Opened, have_in, opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    find_head,
    find_revision,
    known_path,
)
from provisioner.lab.perforce.wire import Value


def insert_opened(request: Request, items: Iterable[Opened]) -> list[Opened]:
    """Record opened files and return them; already opened ones keep their record.

    Files of type +l that are open elsewhere are reported and left out.
    """
    rows, refused = list(items), list[Opened]()
    database = request.state.database
    written = {"db.working": len(rows)}
    with request.locks.writing(written), database.writing():
        refused = [item for item in rows if is_taken(database, item)]
        rows = [item for item in rows if item not in refused]
        database.execute_many(
            "INSERT OR IGNORE INTO opened VALUES (?,?,?,?,?,?,?,?)", iter(rows)
        )
    for item in refused:
        if request.is_tagged:
            request.info(
                f"{item.path} - can't {item.action} exclusive file already opened"
            )
        else:
            request.say(6430, depotFile=item.path, action=item.action)
    return rows


def is_taken(database: Database, item: Opened) -> bool:
    """Return whether another client has opened a file of type +l."""
    if "l" not in filetypes.modifiers_of(item.type):
        return False
    query = "SELECT 1 FROM opened WHERE path=? AND client<>?"
    return database.execute(query, item.path, item.client).fetchone() is not None


def target_change(request: Request) -> int:
    """Return the change that `-c` names; 0 for the default change.

    Raises: CommandError if it is not a pending change of this client.
    """
    text = request.options.get("c", "default")
    if text == "default":
        return 0
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            "SELECT client FROM changes WHERE change=? AND status='pending'",
            int(text),
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    if row[0] != request.client_name:
        raise CommandError(6172, change=f"Change {text}", client=str(row[0]))
    return int(text)


def check_writeable(client: Client) -> None:
    """Refuse to open files on a read-only client.

    Raises: CommandError.
    """
    if client.type == "readonly":
        raise CommandError(7993)


def report_opened(request: Request, client: Client, item: Opened) -> None:
    """Tell the client that a file is open."""
    number = item.revision or 1
    request.report(
        {
            "depotFile": item.path,
            "clientFile": client.local_path(item.client_path),
            "workRev": number,
            "action": item.action,
            "type": item.type,
        },
        6440,
        depotFile=item.path,
        workRev=f"#{number}",
        action=item.action,
    )
    rows = request.state.database.rows(
        "SELECT user, client FROM opened WHERE path=? AND client<>?",
        item.path,
        client.name,
    )
    for user, other in rows:
        if request.is_tagged:
            request.info(f"{item.path} - also opened by {user}@{other}")
        else:
            request.say(6443, depotFile=item.path, user=str(user), client=str(other))
    user, other = lock_holders(request.state.database).get(item.path, ("", client.name))
    if other != client.name:
        request.say(6442, depotFile=item.path, user=user, client=other)


def wanted_type(request: Request, old: str) -> str:
    """Return the type after `-t`.

    Raises: CommandError for an unknown type.
    """
    if not request.has("t") or request.options["t"] == "auto":
        return old
    changed = filetypes.changed(old, request.options["t"])
    if changed is None:
        raise CommandError(6165, type=request.options["t"])
    return changed


def new_type(request: Request, path: str, found: str) -> str:
    """Return the type of a newly added file, before `-t` changes it."""
    return mapped_type(request.state.database, path=path, found=found)


# --- add


def add(request: Request) -> None:
    """Answer `p4 add`."""
    client = request.get_client()
    check_writeable(client)
    change = target_change(request)
    if not request.args:
        raise CommandError(7198, usage="add [-c change] [-f] [-t type] file...")
    candidates = _add_candidates(request, client)
    types = detected_types(
        request,
        client,
        [place for _, place in candidates],
        honors_ignore=not request.has("I"),
    )
    opened = [
        Opened(
            client.name,
            path,
            place,
            0,
            "add",
            wanted_type(request, new_type(request, path, types[place])),
            request.user,
            change,
        )
        for path, place in candidates
        if place in types
    ]
    if not request.has("n"):
        opened = insert_opened(request, opened)
    for item in opened:
        report_opened(request, client, item)


def _add_candidates(request: Request, client: Client) -> list[tuple[str, str]]:
    """Return depot and client path of each argument that can be added."""
    database = request.state.database
    already = opened_by(database, client=client.name)
    access = request.access()
    candidates = []
    for argument in request.args:
        place = _add_place(request, client, argument)
        path = client.view.to_depot(place)
        if path is None:
            request.say(6511, argc=argument)
        elif (path := known_path(database, path)) in already:
            _say_already(request, path, already[path], "add")
        elif not access.allows("open", path):
            request.say(6513, argc=argument)
        elif (head := find_head(database, path=path)) and not head.is_deleted:
            if request.is_tagged:
                request.info(f"{path} - can't add existing file")
            else:
                request.say(6438, depotFile=path, action="add")
        else:
            candidates.append((path, place))
    return candidates


def _add_place(request: Request, client: Client, argument: str) -> str:
    if request.has("f"):
        argument = (
            "//" + paths.escape(argument[2:])
            if argument.startswith("//")
            else paths.escape(argument)
        )
    elif paths.has_wildcard(argument) or "@" in argument or "#" in argument:
        raise CommandError(6226)
    if not argument.startswith("//"):
        return client.from_local(local_argument(request, argument))
    if case.begins(argument, f"//{client.name}/"):
        return argument
    return client.view.to_client(argument) or argument


def _say_already(request: Request, path: str, item: Opened, action: str) -> None:
    if request.is_tagged:
        request.info(
            f"{path} - can't {action} (already opened for {item.action})"
            if item.action != action
            else f"{path} - currently opened for {item.action}"
        )
    else:
        request.say(6431, depotFile=path, action=action, badAction=item.action)


def detected_types(
    request: Request, client: Client, places: list[str], *, honors_ignore: bool
) -> dict[str, str]:
    """Return the type the client detects for each file, without ignored ones."""
    for index, place in enumerate(places):
        variables: dict[str, Value] = {
            "path": client.local_path(place),
            "confirm": replies.TYPE_FOUND,
            "item": index,
        }
        if honors_ignore:
            variables["ignore"] = ""
        request.send("client-CheckFile", variables)
    types = {}
    for answer in request.answers():
        if answer.func == replies.TYPE_FOUND:
            kind = filetypes.normalize(answer.text("type")) or "binary"
            types[places[answer.integer("item")]] = kind
    return types


# --- edit, delete


def edit(request: Request) -> None:
    """Answer `p4 edit`."""
    _open_existing(request, action="edit")


def delete(request: Request) -> None:
    """Answer `p4 delete`."""
    _open_existing(request, action="delete")


def _open_existing(request: Request, *, action: str) -> None:
    client = request.get_client()
    check_writeable(client)
    change = target_change(request)
    access = request.access()
    for wanted in file_sets(request):
        found = False
        opened = []
        already = opened_by(request.state.database, client=client.name)
        for have in have_in(request.state.database, wanted, client=client.name):
            found = True
            if have.path in already:
                _say_already(request, have.path, already[have.path], action)
                continue
            if not access.allows("open", have.path):
                request.say(6513, argc=wanted.typed)
                continue
            revision = find_revision(
                request.state.database, path=have.path, number=have.revision
            )
            if revision is None:
                continue
            opened.append(
                Opened(
                    client.name,
                    have.path,
                    have.client_path,
                    have.revision,
                    action,
                    wanted_type(request, revision.type),
                    request.user,
                    change,
                )
            )
        if not found:
            request.say(6520, argc=wanted.typed)
        if request.options.get("t") == "auto":
            opened = _typed_anew(request, client, opened)
        _open_files(request, client, opened, action=action)


def _typed_anew(request: Request, client: Client, opened: list[Opened]) -> list[Opened]:
    """Return files with the type they would be added with. Source: p4 help edit."""
    places = [item.client_path for item in opened]
    types = detected_types(request, client, places, honors_ignore=False)
    return [
        item._replace(type=new_type(request, item.path, types[item.client_path]))
        if item.client_path in types
        else item
        for item in opened
    ]


def _open_files(
    request: Request, client: Client, opened: list[Opened], *, action: str
) -> None:
    if not request.has("n"):
        opened = insert_opened(request, opened)
        if not request.has("k"):
            for item in opened:
                _prepare_file(request, client, item, action=action)
    for item in opened:
        report_opened(request, client, item)


def _prepare_file(
    request: Request, client: Client, item: Opened, *, action: str
) -> None:
    """Make a file writable for edit, or remove it for delete."""
    local = client.local_path(item.client_path)
    kind = filetypes.wire_code(item.type, line_end=client.line_end)
    if action == "edit":
        request.send("client-ChmodFile", {"path": local, "type": kind, "perms": "rw"})
    else:
        remove_file(request, client, local=local, file_type=item.type, confirm={})


COMMANDS = (
    Command(
        names=("add",),
        run=add,
        usage="add [-c change] [-f -I -n] [-t type] file...",
        flags="fIn",
        valued="ct",
        absent="d",
        uses_client=True,
    ),
    Command(
        names=("edit", "open"),
        run=edit,
        usage="edit [-c change] [-k -n] [-t type] file...",
        flags="kn",
        valued="ct",
        uses_client=True,
    ),
    Command(
        names=("delete",),
        run=delete,
        usage="delete [-c change] [-k -n] file...",
        flags="kn",
        valued="c",
        absent="v",
        uses_client=True,
    ),
)
