"""p4 lock and unlock: prevent others from submitting a file.

Source: p4 help lock, unlock.
"""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request


def lock(request: Request) -> None:
    """Answer `p4 lock`; a file that is already locked stays with its owner."""
    client, database = request.get_client(), request.state.database
    items = _chosen(request, opened_by(database, client=client.name).values())
    with request.locks.writing({"db.locks": len(items)}), database.writing():
        holders = lock_holders(database)
        database.execute_many(
            "INSERT INTO file_locks VALUES (?,?,?)",
            (
                (item.path, item.client, item.user)
                for item in items
                if item.path not in holders
            ),
        )
    for item in items:
        if item.path not in holders:
            request.say(6420, depotFile=item.path)
        elif holders[item.path][1] == client.name:
            request.say(6421, depotFile=item.path)
        else:
            user, other = holders[item.path]
            request.say(6422, depotFile=item.path, user=user, client=other)


def unlock(request: Request) -> None:
    """Answer `p4 unlock`; with -f an administrator releases others' locks."""
    client, database = request.get_client(), request.state.database
    is_forced = request.has("f")
    if is_forced and not request.state.is_admin(request.user):
        raise CommandError(6185)
    items = opened_by(database, client=client.name)
    if is_forced:
        held = database.execute(
            "SELECT o.* FROM opened o JOIN file_locks l USING (path, client)"
        )
        items |= {row[1]: Opened._make(row) for row in held}
    chosen = _chosen(request, items.values())
    with request.locks.writing({"db.locks": len(chosen)}), database.writing():
        holders = lock_holders(database)
        freed = {
            item.path
            for item in chosen
            if item.path in holders
            and (is_forced or holders[item.path][1] == client.name)
        }
        database.execute_many(
            "DELETE FROM file_locks WHERE path=?", ((path,) for path in freed)
        )
    for item in chosen:
        if item.path in freed:
            request.say(6424, depotFile=item.path)
        elif item.path not in holders:
            request.say(6425, depotFile=item.path)
        else:
            user, other = holders[item.path]
            request.say(6426, depotFile=item.path, user=user, client=other)


def lock_holders(database: Database) -> dict[str, tuple[str, str]]:
    """Return the user and client that hold each locked file, by depot path."""
    rows = database.execute("SELECT path, user, client FROM file_locks")
    return {path: (user, client) for path, user, client in rows}


def _chosen(request: Request, items: Iterable[Opened]) -> list[Opened]:
    """Return the selected opened files; warn if there are none."""
    sets = file_sets(request) if request.args else []
    change = request.options.get("c")
    chosen = [
        item
        for item in items
        if (change is None or str(item.change or "default") == change)
        and (
            not sets
            or any(
                s.has_file(path=item.path, client_path=item.client_path) for s in sets
            )
        )
    ]
    if not chosen:
        request.say(6526, argc=" ".join(request.args))
    return chosen


COMMANDS = (
    Command(
        names=("lock",),
        run=lock,
        usage="lock [-c change] [file...]",
        valued="c",
        absent="g",
        uses_client=True,
    ),
    Command(
        names=("unlock",),
        run=unlock,
        usage="unlock [-f] [-c change] [file...]",
        flags="f",
        valued="c",
        absent="gxsr",
        uses_client=True,
    ),
)
