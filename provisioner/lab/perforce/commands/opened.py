# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""p4 opened."""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import OPENED_COLUMNS, Opened, find_have
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


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
        names=("opened",),
        run=opened,
        usage="opened [-a] [-c change] [-C client] [-u user] [-m max] [-s] [file...]",
        flags="as",
        valued="cCum",
        absent="gx",
        uses_client=True,
    ),
)
