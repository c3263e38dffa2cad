"""p4 reconcile -k: add files of the workspace that equal the depot to the have list.

Source: p4 help reconcile. Which revisions are tried is inferred: those of files that
exist in the depot, newest first.
"""

from __future__ import annotations

import time

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.filespec import FileSet
from provisioner.lab.perforce.holdings import have_in, opened_by
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision, revisions_at


def rebuild_have_list(request: Request, client: Client, wanted: FileSet) -> None:
    """Add files on disk to the have list; with -n only report them."""
    found: list[tuple[Revision, str]] = []
    candidates = _missing(request, client, wanted)
    while candidates:
        same, different = _compared(request, client, candidates)
        found += same
        candidates = _one_older(request, different)
    found.sort()
    for revision, place in found:
        local = client.local_path(place)
        request.report(
            {
                "depotFile": revision.path,
                "clientFile": local,
                "rev": revision.revision,
                "action": "added",
            },
            6484,
            depotFile=revision.path,
            depotRev=f"#{revision.revision}",
            localPath=local,
        )
    if not found:
        request.say(6827, argc=wanted.typed)
    if not request.has("n"):
        _record(request, client, found)


def _missing(
    request: Request, client: Client, wanted: FileSet
) -> list[tuple[Revision, str]]:
    """Return the head of each mapped file that the client does not have."""
    database = request.state.database
    known = {have.path for have in have_in(database, wanted, client=client.name)}
    known |= opened_by(database, client=client.name).keys()
    return [
        (revision, place)
        for revision in revisions_at(database, wanted)
        if revision.path not in known
        and not revision.is_deleted
        and (place := client.view.to_client(revision.path)) is not None
    ]


def _compared(
    request: Request, client: Client, candidates: list[tuple[Revision, str]]
) -> tuple[list[tuple[Revision, str]], list[tuple[Revision, str]]]:
    """Return which files on disk equal the revision, and which differ."""
    for index, (revision, place) in enumerate(candidates):
        request.send(
            "client-CheckFile",
            {
                "path": client.local_path(place),
                "type": filetypes.wire_code(revision.type, line_end=client.line_end),
                "digest": revision.digest,
                "confirm": replies.COMPARED,
                "item": index,
            },
        )
    same, different = list[tuple[Revision, str]](), list[tuple[Revision, str]]()
    for answer in request.answers():
        if answer.func != replies.COMPARED:
            continue
        candidate = candidates[answer.integer("item")]
        if answer.text("status") == "same":
            same.append(candidate)
        elif answer.text("status") == "exists":
            different.append(candidate)
    return same, different


def _one_older(
    request: Request, candidates: list[tuple[Revision, str]]
) -> list[tuple[Revision, str]]:
    """Return each file with the previous revision, if that has content."""
    older = list[tuple[Revision, str]]()
    for revision, place in candidates:
        before = find_revision(
            request.state.database, path=revision.path, number=revision.revision - 1
        )
        if before is not None and not before.is_deleted:
            older.append((before, place))
    return older


def _record(
    request: Request, client: Client, found: list[tuple[Revision, str]]
) -> None:
    now = int(time.time())
    written = request.locks.writing({client.have_table: len(found)})
    with written, request.state.database.writing():
        request.state.database.execute_many(
            "INSERT OR IGNORE INTO have VALUES (?,?,?,?,?)",
            (
                (client.name, revision.path, place, revision.revision, now)
                for revision, place in found
            ),
        )
