"""p4 undo: open files so that their submit undoes earlier changes.

Source: p4 help undo. No record connects the undone revisions with the new ones; a
server makes one ("undid").
"""

from __future__ import annotations

import time
from dataclasses import replace

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    insert_opened,
    report_opened,
    target_change,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import (
    remove_file,
    send_file,
    without_keywords,
)
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision, revisions_in


def undo(request: Request) -> None:
    """Answer `p4 undo`: of a revision, of a change, or of a range of them."""
    client = request.get_client()
    check_writeable(client)
    change = target_change(request)
    for wanted in file_sets(request):
        undone: dict[str, list[Revision]] = {}
        for revision in revisions_in(request.state.database, _only(wanted)):
            undone.setdefault(revision.path, []).append(revision)
        if not undone:
            request.say(wanted.nothing_found, argc=wanted.typed)
        for revisions in undone.values():
            _undo_one(request, client, revisions, change)
    request.settle()


def _only(wanted: FileSet) -> FileSet:
    """Return a set restricted to the one revision, or change, that it ends with.

    Raises: CommandError for points that name no revision of their own.
    """
    if wanted.lower is not None or wanted.upper.kind == "head":
        return wanted
    if wanted.upper.kind not in ("number", "change"):
        raise CommandError(7198, usage=_USAGE)
    return replace(wanted, lower=wanted.upper)


def _undo_one(
    request: Request, client: Client, revisions: list[Revision], change: int
) -> None:
    """Open one file whose revisions, newest first, are to be undone."""
    newest, oldest = revisions[0], revisions[-1]
    place = client.view.to_client(newest.path)
    if place is None:
        request.say(6511, argc=newest.path)
        return
    if newest.path in opened_by(request.state.database, client=client.name):
        request.say(6394, depotFile=newest.path, action="undo")
        return
    if not request.access().allows("open", newest.path):
        request.say(6513, argc=newest.path)
        return
    before = find_revision(
        request.state.database, path=oldest.path, number=oldest.revision - 1
    )
    existed = before is not None and not before.is_deleted
    if newest.is_deleted and not existed:
        return  # as it was
    action = "edit" if existed else "delete"
    if newest.is_deleted:
        action = "add"
    item = Opened(
        client=client.name,
        path=newest.path,
        client_path=place,
        revision=0 if action == "add" else newest.revision,
        action=action,
        type=before.type if before and existed else newest.type,
        user=request.user,
        change=change,
    )
    if not request.has("n"):
        _open(request, client, item, before)
    report_opened(request, client, item)


def _open(
    request: Request, client: Client, item: Opened, before: Revision | None
) -> None:
    database, local = request.state.database, client.local_path(item.client_path)
    insert_opened(request, [item])
    if item.action == "delete" or before is None:
        remove_file(request, client, local=local, file_type=item.type, confirm={})
    else:
        if request.has("K"):
            before = without_keywords(request.state.content, before)
        send_file(
            *(request, client, before),
            local=local,
            confirm={},
            clobber=True,
            writable=True,
        )
    if item.revision:
        with database.writing():
            database.execute(
                "INSERT OR REPLACE INTO have VALUES (?,?,?,?,?)",
                *(client.name, item.path, item.client_path, item.revision),
                int(time.time()),
            )


_USAGE = "undo [-n -K] [-c change] file[revRange]"

COMMANDS = (
    Command(
        names=("undo",),
        run=undo,
        usage=_USAGE,
        flags="nK",
        valued="c",
        uses_client=True,
    ),
)
