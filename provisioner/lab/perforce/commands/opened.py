# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""p4 opened."""

from __future__ import annotations

from provisioner.lab.perforce import filetypes
from provisioner.lab.perforce.commands.locking import lock_holders
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import OPENED_COLUMNS, Opened, find_have
from provisioner.lab.perforce.integrations import resolves_of
from provisioner.lab.perforce.messages import NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


def opened(request: Request) -> None:
    """Answer `p4 opened`.

    A tagged client gets no record if nothing is open, and no warning either.

    Source: git-p4, which takes any answer to `p4 -G opened ...` for an opened file.
    """
    if request.has("g"):
        raise NotInLab("opened -g")
    sets = file_sets(request) if request.args else []
    items = [
        item
        for item in _all_opened(request)
        if not sets
        or any(s.has_file(path=item.path, client_path=item.client_path) for s in sets)
    ]
    if request.has("x"):
        items = [item for item in items if _is_exclusive(item)]
    limit = request.number("m", default=0)
    for item in items[:limit] if limit else items:
        if request.has("x"):
            _list_exclusive(request, item)
        else:
            _list_opened(request, item)
    if not items and not request.is_tagged:
        argc = " ".join(request.args)
        if request.has("c"):
            request.say(6528 if request.options["c"] == "default" else 6525, argc=argc)
        elif _is_anywhere(request):
            request.say(6524, argc=argc)
        else:
            request.say(6526, argc=argc)


def _is_anywhere(request: Request) -> bool:
    """Return whether files of every client are requested."""
    if request.has("C"):
        return False
    return request.has("a") or request.has("u") or request.has("x")


def _all_opened(request: Request) -> list[Opened]:
    """Return what the options choose. Of -a, -C, -u and -c the last one counts most.

    Source: p4 help opened.
    """
    conditions, parameters = ["1"], list[object]()
    change = request.options.get("c", "")
    if change not in ("", "default"):
        conditions.append("change=?")
        parameters.append(change)
    else:
        if request.has("C"):
            conditions.append("client=?")
            parameters.append(request.options["C"])
        elif not _is_anywhere(request):
            conditions.append("client=?")
            parameters.append(request.get_client().name)
        if request.has("u"):
            conditions.append("user=?")
            parameters.append(request.options["u"])
        if change:
            conditions.append("change=0")
    _check_limits(request)
    rows = request.state.database.rows(
        f"SELECT {OPENED_COLUMNS} FROM opened WHERE {' AND '.join(conditions)}"
        " ORDER BY path, client",
        *parameters,
    )
    return [Opened._make(row) for row in rows]


def _check_limits(request: Request) -> None:
    """Refuse to read more rows than the user may: of a client, or of all files.

    db.working is in the order of client paths.
    """
    if not request.is_limited:
        return
    client = request.options.get("C")
    if client is None and not _is_anywhere(request):
        client = request.client_name
    condition, values = ("", ()) if client is None else (" WHERE client=?", (client,))
    query = f"SELECT count(*) FROM opened{condition}"
    [(count,)] = request.state.database.rows(query, *values)
    request.check_limits(scanned=int(str(count)), results=0)


def _is_exclusive(item: Opened) -> bool:
    """Return whether only one client may open the file."""
    return "l" in filetypes.modifiers_of(item.type)


def _list_exclusive(request: Request, item: Opened) -> None:
    request.report(
        {"depotFile": item.path, "user": item.user, "client": item.client},
        6915,
        depotFile=item.path,
        user=item.user,
        client=item.client,
    )


def _list_opened(request: Request, item: Opened) -> None:
    number = item.revision or 1
    is_short = request.has("s")
    record: dict[str, Value] = {"depotFile": item.path}
    if not is_short:
        have = find_have(request.state.database, client=item.client, path=item.path)
        record |= {
            "clientFile": item.client_path,
            "rev": number,
            "haveRev": have.revision if have else "none",
        }
    record |= {"action": item.action, "change": item.change or "default"}
    if not is_short:
        record["type"] = item.type
    record |= {"user": item.user, "client": item.client}
    if not is_short and item.action.startswith("move/"):
        record["movedFile"] = _other_half(request, item)
    holder = lock_holders(request.state.database).get(item.path)
    is_locked = not is_short and holder is not None and holder[1] == item.client
    if is_locked:
        record["ourLock"] = ""
    is_foreign = any(request.has(option) for option in "aCuc")
    line = _LINES[is_short, is_foreign, _is_exclusive(item)]
    if is_locked and not _is_exclusive(item):
        line = 6449 if is_foreign else 6448
    request.report(
        record,
        line,
        depotFile=item.path,
        workRev=f"#{number}",
        action=item.action,
        change=f"change {item.change}" if item.change else "default change",
        type=item.type,
        user=item.user,
        client=item.client,
    )


def _other_half(request: Request, item: Opened) -> str:
    """Return the path that a file was moved from or to."""
    for origin in resolves_of(request.state.database, client=item.client):
        if origin.how == "moved from" and item.path in (origin.path, origin.other):
            return origin.other if item.path == origin.path else origin.path
    return ""


# (short, of any client, exclusive) -> message of the untagged line.
_LINES = {
    (False, False, False): 6446,
    (False, False, True): 6779,
    (False, True, False): 6447,
    (False, True, True): 6780,
    (True, False, False): 6788,
    (True, False, True): 6792,
    (True, True, False): 6789,
    (True, True, True): 6793,
}


COMMANDS = (
    Command(
        names=("opened",),
        run=opened,
        usage="opened [-a -s -x] [-c change] [-C client] [-u user] [-m max] [file...]",
        flags="asgx",
        valued="cCum",
        uses_client=True,
    ),
)
