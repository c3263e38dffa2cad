"""The commit of a submit: new revisions, and the client's have list."""

from __future__ import annotations

import time
from collections.abc import Collection

from provisioner.lab.perforce import filetypes, keywords
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.changeforms import (
    common_path,
)
from provisioner.lab.perforce.commands.intake import Sent
from provisioner.lab.perforce.commands.locking import lock_holders
from provisioner.lab.perforce.commands.sending import send_file
from provisioner.lab.perforce.fixes import settle_fixed
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.integrations import (
    drop_resolves,
    record_submitted,
    resolves_of,
)
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_head
from provisioner.lab.perforce.wire import Value


class OutOfDate(Exception):
    """Somebody else was faster; the argument has the messages."""


def outdated(request: Request, files: list[Opened]) -> list[dict[str, Value]]:
    """Return a message for each file that somebody has changed or locked since."""
    problems: list[dict[str, Value]] = []
    holders = lock_holders(request.state.database)
    for item in files:
        user, client = holders.get(item.path, ("", item.client))
        if client != item.client:
            held = {"user": user, "client": client}
            problems.append({"id": 6422, "depotFile": item.path, **held})
            continue
        head = find_head(request.state.database, path=item.path)
        problem = _conflict(item, head)
        if problem:
            problems.append(problem)
    return problems


def _conflict(item: Opened, head: Revision | None) -> dict[str, Value] | None:
    exists = head is not None and not head.is_deleted
    if item.is_add:
        if not exists:
            return None
        return {"id": 6476, "depotFile": item.path, "action": item.action}
    if not exists:
        return {"id": 6477, "depotFile": item.path, "action": item.action}
    assert head is not None
    if head.revision == item.revision:
        return None
    return {"id": 6495, "depotFile": item.path, "revRange": f"#{head.revision}"}


def reopens(request: Request, client: Client) -> bool:
    """Return whether submitted files are reopened. Source: p4 help submit: -f wins."""
    if request.has("f"):
        return request.options["f"].endswith("+reopen")
    return request.has("r") or client.submit_options.endswith("+reopen")


def commit(
    request: Request,
    client: Client,
    number: int,
    files: list[Opened],
    sent: dict[str, Sent],
) -> tuple[int, list[Revision]]:
    """Create the new revisions; return them with the final change number.

    Raises: OutOfDate if somebody else submitted one of the files first; then nothing is
    changed.
    """
    database = request.state.database
    now = int(time.time())
    count = len(files)
    tables = {
        **{"db.change": 1, "db.desc": 1, "db.rev": count, "db.working": count},
        client.have_table: count,
    }
    resolves = resolves_of(database, client=client.name)
    paths = {item.path for item in files}
    integrated = sum(item.path in paths for item in resolves)
    if integrated:
        # Source: the locks of dm-CommitSubmit in logs: db.integed among them.
        tables["db.integed"] = integrated
    with request.locks.writing(tables), database.writing():
        problems = outdated(request, files)
        if problems:
            raise OutOfDate(problems)
        # Submitted changes are in the order of their numbers.
        is_newest = int(database.counter("change")) == number
        final = number if is_newest else database.next_change()
        revisions = [
            new_revision(request, item, final, sent.get(item.path), now)
            for item in files
        ]
        database.execute_many(
            "INSERT INTO revisions VALUES (?,?,?,?,?,?,?,?,?)", iter(revisions)
        )
        _record_integrations(request, client, revisions)
        _update_client(request, client, files, revisions, sent, now)
        database.execute(
            "UPDATE changes SET change=?, status='submitted', time=?, path=?"
            " WHERE change=?",
            final,
            now,
            common_path([item.path for item in files]),
            number,
        )
        database.execute("UPDATE opened SET change=? WHERE change=?", final, number)
        status = request.options.get("s", "")
        settle_fixed(database, change=number, final=final, status=status)
    return final, revisions


def new_revision(
    request: Request, item: Opened, change: int, sent: Sent | None, now: int
) -> Revision:
    head = find_head(request.state.database, path=item.path)
    made = Revision(
        path=item.path,
        revision=head.revision + 1 if head else 1,
        change=change,
        action=item.action,
        type=item.type,
        time=now,
        modified=sent.modified if sent else 0,
        digest=sent.digest if sent else "",
        size=sent.size if sent else 0,
    )
    return made if made.is_deleted else with_keywords(request, made)


def with_keywords(request: Request, made: Revision) -> Revision:
    """Return a new revision with its keywords expanded in the content."""
    if not keywords.has_keywords(made.type):
        return made
    content = request.state.content
    described = keywords.Described(
        path=made.path,
        number=made.revision,
        type=made.type,
        change=made.change,
        submitted=made.time,
        author=request.user,
    )
    data = keywords.expanded(content.read(made.digest), revision=described)
    digest, size = content.add(data)
    return made._replace(digest=digest, size=size)


def _record_integrations(
    request: Request, client: Client, revisions: list[Revision]
) -> None:
    database = request.state.database
    made = {revision.path: revision for revision in revisions}
    for item in resolves_of(database, client=client.name):
        if item.path in made:
            revision = made[item.path]
            record_submitted(
                database, item, revision=revision.revision, change=revision.change
            )
    drop_resolves(database, client=client.name, paths=made)


def _update_client(
    request: Request,
    client: Client,
    files: list[Opened],
    revisions: list[Revision],
    sent: dict[str, Sent],
    now: int,
) -> None:
    database = request.state.database
    pairs = list(zip(files, revisions, strict=True))
    lazy = {path for path, each in sent.items() if each.is_lazy}
    database.execute_many(
        "DELETE FROM opened WHERE client=? AND path=?",
        ((client.name, item.path) for item in files),
    )
    database.execute_many(
        "DELETE FROM have WHERE client=? AND path=?",
        ((client.name, item.path) for item in files if item.is_delete),
    )
    database.execute_many(
        "INSERT INTO have VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET"
        " client_path=excluded.client_path, revision=excluded.revision,"
        " synced=excluded.synced",
        (
            (client.name, item.path, item.client_path, revision.revision, now)
            for item, revision in pairs
            if not item.is_delete and item.path not in lazy
        ),
    )
    if reopens(request, client):
        database.execute_many(
            "INSERT INTO opened VALUES (?,?,?,?,?,?,?,?)",
            (
                item._replace(revision=revision.revision, action="edit", change=0)
                for item, revision in pairs
                if not item.is_delete
            ),
        )


def report(
    request: Request,
    client: Client,
    number: int,
    final: int,
    revisions: list[Revision],
    files: list[Opened],
    *,
    lazy: Collection[str] = (),
) -> None:
    for item, revision in zip(files, revisions, strict=True):
        request.report(
            {
                "depotFile": item.path,
                "rev": revision.revision,
                "action": item.action,
            },
            6479,
            action=item.action,
            depotFile=item.path,
            depotRev=f"#{revision.revision}",
        )
        if item.is_delete or item.path in lazy:
            continue
        if not reopens(request, client):
            make_read_only(request, client, item)
        elif not request.is_tagged:
            number_now = f"#{revision.revision}"
            request.say(6436, depotFile=item.path, workRev=number_now, action="edit")
    if request.is_tagged:
        request.record({"submittedChange": final})
    elif final == number:
        request.say(7294, change=f"Change {final}")
    else:
        request.say(7295, change=f"Change {number}", newChange=f"change {final}")
    if not request.has("K"):
        at_client = [f for f in files if f.path not in lazy]
        made = [r for r in revisions if r.path not in lazy]
        _refresh_keywords(request, client, at_client, made)


def _refresh_keywords(
    request: Request, client: Client, files: list[Opened], revisions: list[Revision]
) -> None:
    """Expand the keywords in the client's own files.

    That no record is sent for this is inferred.

    Source: -K in p4 help submit.
    """
    for item, revision in zip(files, revisions, strict=True):
        if item.is_delete or not keywords.has_keywords(revision.type):
            continue
        local = client.local_path(item.client_path)
        if not request.is_tagged:
            number = f"#{revision.revision}"
            request.say(6490, depotFile=item.path, depotRev=number, localPath=local)
        send_file(
            request,
            client,
            revision,
            local=local,
            confirm={},
            clobber=True,
            writable=reopens(request, client),
        )


def make_read_only(request: Request, client: Client, item: Opened) -> None:
    if client.perms(item.type) == "ro" and item.type != "symlink":
        request.send(
            "client-ChmodFile",
            {
                "path": client.local_path(item.client_path),
                "type": filetypes.wire_code(item.type, line_end=client.line_end),
                "perms": "ro",
            },
        )
