"""p4 submit -e: submit a shelf without a client. Source: p4 help submit."""

from __future__ import annotations

import time

from provisioner.lab.perforce.commands.changeforms import common_path
from provisioner.lab.perforce.commands.committing import new_revision, outdated
from provisioner.lab.perforce.commands.intake import Sent
from provisioner.lab.perforce.fixes import settle_fixed
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.integrations import record_submitted
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision
from provisioner.lab.perforce.shelves import (
    Shelved,
    drop_shelved,
    origins_of,
    shelf_of,
)


def submit_shelf(request: Request) -> None:
    """Submit the shelf of the change that -e names, for its owner on any client."""
    number = request.number("e", default=0)
    shelf = shelf_of(request.state.database, change=number)
    _check_may_submit(request, number, shelf)
    files = [
        Opened(
            *(request.client_name, file.path, "", file.revision, file.action),
            *(file.type, request.user, number),
        )
        for file in shelf
    ]
    if request.is_tagged:
        request.record({"change": number, "locked": len(files)})
    else:
        request.say(7296, change=number)
    final, revisions = _commit(request, number, files, shelf)
    for revision in revisions:
        request.report(
            {
                "depotFile": revision.path,
                "rev": revision.revision,
                "action": revision.action,
            },
            6479,
            action=revision.action,
            depotFile=revision.path,
            depotRev=f"#{revision.revision}",
        )
    if request.is_tagged:
        request.record({"submittedChange": final})
    elif final == number:
        request.say(7294, change=f"Change {final}")
    else:
        request.say(7295, change=f"Change {number}", newChange=f"change {final}")


def _check_may_submit(request: Request, number: int, shelf: list[Shelved]) -> None:
    """Refuse a missing shelf, another user's, or one with files still open.

    Raises: CommandError.
    """
    database = request.state.database
    row = database.execute(
        "SELECT user FROM changes WHERE change=? AND status='pending'", number
    ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {number}")
    if row[0] != request.user:
        raise CommandError(6173, change=f"Change {number}", user=str(row[0]))
    if not shelf:
        raise CommandError(7808, change=number)
    access = request.access()
    if not all(access.allows("write", file.path) for file in shelf):
        request.say(6513, argc="")
        raise CommandError(7809, change=number)
    opened = database.execute("SELECT client FROM opened WHERE change=?", number)
    if (row := opened.fetchone()) is not None:
        request.say(6886, client=str(row[0]), change=number)
        raise CommandError(7809, change=number)


def _commit(
    request: Request, number: int, files: list[Opened], shelf: list[Shelved]
) -> tuple[int, list[Revision]]:
    """Create the revisions; return them with the final number of the change."""
    database, now = request.state.database, int(time.time())
    tables = {"db.change": 1, "db.desc": 1, "db.rev": len(files)}
    with request.locks.writing(tables), database.writing():
        problems = outdated(request, files)
        origins = origins_of(database, change=number, client=request.client_name)
        waiting = [origin for origin in origins if not origin.how]
        if problems or waiting:
            for problem in problems:
                message = int(problem.pop("id"))
                request.say(message, **problem)
            for origin in waiting:
                request.say(6495, depotFile=origin.path, revRange=origin.revisions)
            raise CommandError(7809, change=number)
        # Submitted changes are in the order of their numbers.
        is_newest = int(database.counter("change")) == number
        final = number if is_newest else database.next_change()
        revisions = []
        for item, file in zip(files, shelf, strict=True):
            sent = Sent(digest=file.digest, size=file.size, modified=file.modified)
            revisions.append(new_revision(request, item, final, sent, now))
        database.execute_many(
            "INSERT INTO revisions VALUES (?,?,?,?,?,?,?,?,?)", iter(revisions)
        )
        numbers = {made.path: made.revision for made in revisions}
        for origin in origins:
            record_submitted(
                database, origin, revision=numbers[origin.path], change=final
            )
        drop_shelved(database, shelf)
        database.execute(
            "UPDATE changes SET change=?, status='submitted', time=?, path=?"
            " WHERE change=?",
            *(final, now, common_path([item.path for item in files]), number),
        )
        status = request.options.get("s", "")
        settle_fixed(database, change=number, final=final, status=status)
    return final, revisions
