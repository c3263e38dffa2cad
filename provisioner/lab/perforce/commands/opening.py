"""p4 add, edit, delete, revert, reopen, opened."""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

from collections.abc import Iterable

from provisioner.lab.perforce import filetypes, paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sync import send_file
from provisioner.lab.perforce.filespec import (
    OPENED_COLUMNS,
    Opened,
    file_sets,
    find_have,
    find_head,
    find_revision,
    have_in,
    local_argument,
    opened_by,
)
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


def insert_opened(request: Request, items: Iterable[Opened]) -> None:
    """Record opened files; one that is opened already keeps its record."""
    with request.state.database.writing():
        request.state.database.execute_many(
            "INSERT OR IGNORE INTO opened VALUES (?,?,?,?,?,?,?,?)", iter(items)
        )


def target_change(request: Request) -> int:
    """Return the change that `-c` names; 0 for the default change.

    Raises: CommandError when it is not a pending change of this client.
    """
    text = request.options.get("c", "default")
    if text == "default":
        return 0
    row = None
    if text.isdecimal():
        row = request.state.database.execute(
            "SELECT client, user FROM changes WHERE change=? AND status='pending'",
            int(text),
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    if row[0] != request.client_name:
        raise CommandError(6185)
    return int(text)


def check_writeable(client: Client) -> None:
    """Refuse to open files on a client that may only read.

    Raises: CommandError.
    """
    if client.type == "readonly":
        raise CommandError(6935, client=client.name)


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


def wanted_type(request: Request, old: str) -> str:
    """Return the type after `-t`.

    Raises: CommandError for a type nobody knows.
    """
    if not request.has("t"):
        return old
    changed = filetypes.changed(old, request.options["t"])
    if changed is None:
        raise CommandError(6162, type=request.options["t"])
    return changed


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
        honours_ignore=not request.has("I"),
    )
    opened = [
        Opened(
            client.name,
            path,
            place,
            0,
            "add",
            wanted_type(request, types[place]),
            request.user,
            change,
        )
        for path, place in candidates
        if place in types
    ]
    if not request.has("n"):
        insert_opened(request, opened)
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
        elif path in already:
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
        raise CommandError(6163, arg=argument)
    if not argument.startswith("//"):
        return client.from_local(local_argument(request, argument))
    if argument.startswith(f"//{client.name}/"):
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
    request: Request, client: Client, places: list[str], *, honours_ignore: bool
) -> dict[str, str]:
    """Return the type the client finds for each file; ignored ones are left out."""
    for index, place in enumerate(places):
        variables: dict[str, Value] = {
            "path": client.local_path(place),
            "confirm": "type",
            "item": index,
        }
        if honours_ignore:
            variables["ignore"] = "1"
        request.send("client-CheckFile", variables)
    types = {}
    for answer in request.answers():
        if answer.func == "type":
            kind = filetypes.normalise(answer.text("type")) or "binary"
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
        _open_files(request, client, opened, action=action)


def _open_files(
    request: Request, client: Client, opened: list[Opened], *, action: str
) -> None:
    if not request.has("n"):
        if not request.has("k"):
            for item in opened:
                _prepare_file(request, client, item, action=action)
        insert_opened(request, opened)
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
        request.send(
            "client-DeleteFile",
            {
                "path": local,
                "type": kind,
                "handle": "delete",
                "confirm": "done",
                "decline": "declined",
            },
        )


# --- revert, reopen


def revert(request: Request) -> None:
    """Answer `p4 revert`."""
    if request.has("C"):
        _revert_foreign(request)
        return
    client = request.get_client()
    change = target_change(request) if request.has("c") else None
    if not request.args and not request.has("a"):
        raise CommandError(7198, usage="revert [-a -k -n] [-c change] file...")
    for wanted in file_sets(request, default=""):
        chosen = [
            item
            for item in opened_by(request.state.database, client=client.name).values()
            if wanted.has_file(path=item.path, client_path=item.client_path)
            and change in (None, item.change)
        ]
        if request.has("a"):
            chosen = _unchanged(request, client, chosen)
        elif not chosen:
            request.say(6526, argc=wanted.typed)
        _revert_files(request, client, chosen, keeps_files=request.has("k"))


def _revert_foreign(request: Request) -> None:
    """Revert what another client has open: server side only, for administrators."""
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    name = request.options["C"]
    change = request.options.get("c")
    for argument in request.args:
        pattern, _ = paths.split_revision(argument)
        chosen = [
            item
            for item in opened_by(request.state.database, client=name).values()
            if paths.pattern_matches(pattern, item.path)
            or paths.pattern_matches(pattern, item.client_path)
            if change is None or str(item.change or "default") == change
        ]
        if not chosen:
            request.say(6526, argc=argument)
        _revert_files(request, None, chosen, keeps_files=True)


def _unchanged(request: Request, client: Client, chosen: list[Opened]) -> list[Opened]:
    """Return the files opened for edit whose content is that of their revision."""
    for index, item in enumerate(chosen):
        revision = find_revision(
            request.state.database, path=item.path, number=item.revision
        )
        if item.action != "edit" or revision is None or revision.type != item.type:
            continue
        request.send(
            "client-CheckFile",
            {
                "path": client.local_path(item.client_path),
                "type": filetypes.wire_code(item.type, line_end=client.line_end),
                "digest": revision.digest,
                "confirm": "checked",
                "item": index,
            },
        )
    return [
        chosen[answer.integer("item")]
        for answer in request.answers()
        if answer.func == "checked" and answer.text("status") == "same"
    ]


def _revert_files(
    request: Request, client: Client | None, chosen: list[Opened], *, keeps_files: bool
) -> None:
    is_preview = request.has("n")
    for item in chosen:
        outcome, line = _outcome(item, keeps_files=keeps_files)
        if client is not None and not keeps_files and not is_preview and item.revision:
            _restore(request, client, item)
        place = client.local_path(item.client_path) if client else item.client_path
        request.report(
            {
                "depotFile": item.path,
                "clientFile": place,
                "haveRev": item.revision or "none",
                "oldAction": item.action,
                "action": outcome,
            },
            line,
            depotFile=item.path,
            haveRev=f"#{item.revision or 'none'}",
            action=item.action,
        )
    request.settle()
    if is_preview:
        return
    with request.state.database.writing():
        request.state.database.execute_many(
            "DELETE FROM opened WHERE client=? AND path=?",
            ((item.client, item.path) for item in chosen),
        )


def _outcome(item: Opened, *, keeps_files: bool) -> tuple[str, int]:
    if item.is_add:
        return "abandoned", 6458
    if keeps_files:
        return "cleared", 6459
    return "reverted", 6461


def _restore(request: Request, client: Client, item: Opened) -> None:
    revision = find_revision(
        request.state.database, path=item.path, number=item.revision
    )
    if revision is not None and not revision.is_deleted:
        send_file(
            request,
            client,
            revision,
            local=client.local_path(item.client_path),
            confirm={},
            clobber=True,
        )


def reopen(request: Request) -> None:
    """Answer `p4 reopen`: another change or another type."""
    client = request.get_client()
    change = target_change(request) if request.has("c") else None
    for wanted in file_sets(request):
        chosen = [
            item
            for item in opened_by(request.state.database, client=client.name).values()
            if wanted.has_file(path=item.path, client_path=item.client_path)
        ]
        if not chosen:
            request.say(6526, argc=wanted.typed)
        moved = [
            item._replace(
                change=item.change if change is None else change,
                type=wanted_type(request, item.type),
            )
            for item in chosen
        ]
        with request.state.database.writing():
            request.state.database.execute_many(
                "UPDATE opened SET change=?, type=? WHERE client=? AND path=?",
                ((i.change, i.type, i.client, i.path) for i in moved),
            )
        for item in moved:
            number = item.revision or 1
            shown = f"change {item.change}" if item.change else "default change"
            request.report(
                {
                    "depotFile": item.path,
                    "workRev": number,
                    "action": item.action,
                    "type": item.type,
                    "change": item.change or "default",
                },
                6436,
                depotFile=item.path,
                workRev=f"#{number}",
                action=shown,
            )


# --- opened


def opened(request: Request) -> None:
    """Answer `p4 opened`."""
    sets = file_sets(request) if request.args else []
    items = [
        item
        for item in _all_opened(request)
        if not sets
        or any(s.has_file(path=item.path, client_path=item.client_path) for s in sets)
    ]
    limit = request.number("m", default=0)
    for item in items[:limit] if limit else items:
        _list_opened(request, item)
    if not items and (request.args or not request.is_tagged):
        argc = " ".join(request.args)
        if request.has("a"):
            request.say(6524, argc=argc)
        elif request.has("c"):
            request.say(6528 if request.options["c"] == "default" else 6525, argc=argc)
        else:
            request.say(6526, argc=argc)


def _all_opened(request: Request) -> list[Opened]:
    conditions, parameters = ["1"], list[object]()
    if request.has("C"):
        conditions.append("client=?")
        parameters.append(request.options["C"])
    elif not request.has("a"):
        conditions.append("client=?")
        parameters.append(request.get_client().name)
    if request.has("u"):
        conditions.append("user=?")
        parameters.append(request.options["u"])
    if request.has("c"):
        text = request.options["c"]
        conditions.append("change=?")
        parameters.append(0 if text == "default" else text)
    rows = request.state.database.rows(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE {' AND '.join(conditions)}"
        " ORDER BY path, client",
        *parameters,
    )
    return [Opened._make(row) for row in rows]


def _list_opened(request: Request, item: Opened) -> None:
    have = find_have(request.state.database, client=item.client, path=item.path)
    number = item.revision or 1
    record: dict[str, Value] = {"depotFile": item.path}
    if not request.has("s"):
        record |= {
            "clientFile": item.client_path,
            "rev": number,
            "haveRev": have.revision if have else "none",
        }
    record |= {"action": item.action, "change": item.change or "default"}
    if not request.has("s"):
        record["type"] = item.type
    record |= {"user": item.user, "client": item.client}
    is_foreign = request.has("a") or request.has("C")
    request.report(
        record,
        6447 if is_foreign else 6446,
        depotFile=item.path,
        workRev=f"#{number}",
        action=item.action,
        change=f"change {item.change}" if item.change else "default change",
        type=item.type,
        user=item.user,
        client=item.client,
    )


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
        names=("edit",),
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
    Command(
        names=("revert",),
        run=revert,
        usage="revert [-a -k -n] [-c change] [-C client] file...",
        flags="akn",
        valued="cC",
        absent="w",
        uses_client=True,
    ),
    Command(
        names=("reopen",),
        run=reopen,
        usage="reopen [-c change] [-t type] file...",
        valued="ct",
        uses_client=True,
    ),
    Command(
        names=("opened",),
        run=opened,
        usage="opened [-a] [-c change] [-C client] [-u user] [-m max] [-s] [file...]",
        flags="as",
        valued="cCum",
        absent="gx",
        uses_client=True,
    ),
)
