"""p4 copy and populate: make a set of files identical to another one.

Source: p4 help copy, p4 help populate. Inferred: that target files without a source
stay, and the words of the lines without tags.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import NamedTuple

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.changeforms import common_path, insert_pending
from provisioner.lab.perforce.commands.committing import with_keywords
from provisioner.lab.perforce.commands.integrate import pairs
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    insert_opened,
    target_change,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.holdings import Opened, find_have, opened_by
from provisioner.lab.perforce.integrations import (
    Resolve,
    last_taken,
    put_resolves,
    record_submitted,
)
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_head, known_path


class _Copy(NamedTuple):
    """One file to copy: its source, and what the client has opened at the target."""

    source: Revision
    opened: Opened
    taken: Resolve


# Action -> how the file is connected with its source, and what a line calls it.
_HOW = {
    "branch": ("branch from", "branch/sync"),
    "integrate": ("copy from", "sync/integrate"),
    "delete": ("delete from", "delete"),
}


def copy(request: Request) -> None:
    """Answer `p4 copy`: open files with the content of others, already resolved."""
    client = request.get_client()
    check_writeable(client)
    change = target_change(request)
    limit = request.number("m", default=0)
    copies = list(itertools.islice(_copies(request, client, change), limit or None))
    if not copies:
        request.say(6532, argc=" ".join(request.args))
    if not request.has("n"):
        for item in copies:
            _do(request, client, item)
        request.settle()
    for item in copies:
        if not request.has("q"):
            _report(request, client, item)


def _copies(request: Request, client: Client, change: int) -> Iterable[_Copy]:
    database, access = request.state.database, request.access()
    busy = opened_by(database, client=client.name)
    for source, named in pairs(request):
        target = known_path(database, named)
        head = find_head(database, path=target)
        if not _differs(source, head):
            continue
        place = client.view.to_client(target)
        if place is None:
            request.say(6511, argc=target)
        elif target in busy:
            request.say(6394, depotFile=target, action="copy")
        elif not access.allows("open", target):
            request.say(6513, argc=target)
        else:
            yield _opening(request, client, source, (target, place, head), change)


def _differs(source: Revision, head: Revision | None) -> bool:
    exists = head is not None and not head.is_deleted
    if source.is_deleted or not exists:
        return exists or not source.is_deleted
    assert head is not None
    return (source.digest, source.type) != (head.digest, head.type)


def _opening(
    request: Request,
    client: Client,
    source: Revision,
    target: tuple[str, str, Revision | None],
    change: int,
) -> _Copy:
    path, place, head = target
    exists = head is not None and not head.is_deleted
    action = "branch"
    if exists:
        action = "delete" if source.is_deleted else "integrate"
    number = head.revision if head and exists else 0
    kind = head.type if head and action == "delete" else source.type
    opened = Opened(
        client.name, path, place, number, action, kind, request.user, change
    )
    start = last_taken(request.state.database, path=path, other=source.path)
    taken = Resolve(
        *(client.name, path, source.path, min(start, source.revision - 1)),
        *(source.revision, source.path, max(start, 1), _HOW[action][0]),
    )
    return _Copy(source, opened, taken)


def _do(request: Request, client: Client, item: _Copy) -> None:
    """Send the content and the target's head to the client; files are read-only."""
    opened, database = item.opened, request.state.database
    local = client.local_path(opened.client_path)
    if opened.action != "delete":
        send_file(request, client, item.source, local=local, confirm={}, clobber=True)
    elif find_have(database, client=client.name, path=opened.path):
        remove_file(request, client, local=local, file_type=opened.type, confirm={})
    insert_opened(request, [opened])
    with database.writing():
        put_resolves(database, [item.taken])
        if opened.revision:
            database.execute(
                "INSERT OR REPLACE INTO have VALUES (?,?,?,?,?)",
                *(client.name, opened.path, opened.client_path, opened.revision),
                int(time.time()),
            )


def _report(request: Request, client: Client, item: _Copy) -> None:
    opened, number = item.opened, item.opened.revision or 1
    request.report(
        {
            "depotFile": opened.path,
            "clientFile": client.local_path(opened.client_path),
            "workRev": number,
            "action": opened.action,
            "fromFile": item.source.path,
            "startFromRev": item.taken.start or "none",
            "endFromRev": item.source.revision,
        },
        6405,
        depotFile=opened.path,
        workRev=f"#{number}",
        action=_HOW[opened.action][1],
        fromFile=item.source.path,
        fromRev=f"#{item.source.revision}",
    )


def populate(request: Request) -> None:
    """Answer `p4 populate`: branch files to where there were none, in one step."""
    database, access = request.state.database, request.access()
    limit = request.number("m", default=0)
    found = [
        (source, target) for source, target in pairs(request) if not source.is_deleted
    ][: limit or None]
    if any(find_head(database, path=target) for _, target in found):
        raise CommandError(6822)
    if not all(access.allows("write", target) for _, target in found):
        raise CommandError(6185)
    if not found:
        request.say(6519, argc=" ".join(request.args))
        return
    number = 0 if request.has("n") else _branch(request, found)
    if request.has("o") or request.has("n"):
        for source, target in found:
            request.report(
                {"depotFile": target, "action": "branch", "fromFile": source.path},
                6405,
                depotFile=target,
                workRev="#1",
                action="branch",
                fromFile=source.path,
                fromRev=f"#{source.revision}",
            )
    request.say(7759, fileCount=len(found), change=number or "")


def _branch(request: Request, found: list[tuple[Revision, str]]) -> int:
    """Create the revisions; return the number of their change."""
    database, now = request.state.database, int(time.time())
    where = " ".join(request.args) if request.args else request.options.get("b", "")
    text = request.options.get("d", f"Populate {where}.")
    tables = {"db.change": 1, "db.rev": len(found)}
    with request.locks.writing(tables), database.writing():
        number = database.next_change()
        insert_pending(request, number, description=text)
        for source, target in found:
            made = source._replace(path=target, revision=1, change=number, time=now)
            made = with_keywords(request, made._replace(action="branch"))
            database.execute("INSERT INTO revisions VALUES (?,?,?,?,?,?,?,?,?)", *made)
            taken = Resolve(
                *("", target, source.path, 0, source.revision, source.path, 1),
                "branch from",
            )
            record_submitted(database, taken, revision=1, change=number)
        database.execute(
            "UPDATE changes SET status='submitted', path=? WHERE change=?",
            common_path([target for _, target in found]),
            number,
        )
    return number


COMMANDS = (
    Command(
        names=("copy",),
        run=copy,
        usage="copy [-c change] [-n -q -r] [-m max] [-b branch [to...] | from[rev] to]",
        flags="nqr",
        valued="cbm",
        absent="AfFKPSsv",
        uses_client=True,
    ),
    Command(
        names=("populate",),
        run=populate,
        usage="populate [-d text] [-n -o -r] [-m max] [-b branch [to] | from[rev] to]",
        flags="nor",
        valued="dbm",
        absent="fPSs",
        uses_client=True,
    ),
)
