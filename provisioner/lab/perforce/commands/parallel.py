# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""A sync whose files come through several connections of the client.

The list of files is stored in the database under a token. The client gets the token and
opens connections, in threads of its own or as processes; each sends the command
`transmit` and gets batches until none is left. The connection of the sync waits for
them, and records what was confirmed.

Source: clientReceiveFiles in the published client source; --parallel in p4 help sync;
net.parallel in p4 help configurables. Inferred: that a sync needs both the minimum
number of files and of bytes, and that deletions stay with the first connection.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from provisioner.lab.perforce import replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import (
    remove_step,
    send_file,
    without_keywords,
)
from provisioner.lab.perforce.commands.syncplan import Step
from provisioner.lab.perforce.commands.syncreports import Reports, noted
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import REVISION_COLUMNS, Revision

_UNTOUCHED, _TAKEN, _DONE = range(3)
# Batches that are on their way through one connection at most, and batches of the
# largest size: many small files must not wait for the answer to each eight of them.
_BATCHES_AHEAD, _LARGEST_AHEAD = 64, 2
_BATCH_BYTES = 512 * 1024
# Options of the sync that say how its files are written.
_KEPT_OPTIONS = ("f", "K")


class Threads(NamedTuple):
    """The number of connections, and how much each gets at a time."""

    connections: int
    batch: int
    batch_bytes: int


def wanted_threads(request: Request, *, count: int, size: int) -> Threads | None:
    """Return how the files of a sync are sent; None for one after another.

    Raises: CommandError if the request is invalid or not allowed.
    """
    settings = request.state.configurables
    names = ("threads", "batch", "batchsize", "min", "minsize")
    wanted = {name: settings.number(f"net.parallel.{name}") for name in names}
    most = settings.number("net.parallel.max")
    text = request.options.get("parallel")
    if text is not None:
        wanted |= _parsed(text)
        if wanted["threads"] and not most:
            raise CommandError(6940)
    threads = min(wanted["threads"], most)
    is_small = count < wanted["min"] or size < wanted["minsize"]
    if threads < 2 or is_small or "progress" in request.message:
        return None
    return Threads(threads, max(wanted["batch"], 1), max(wanted["batchsize"], 1))


def _parsed(text: str) -> dict[str, int]:
    """Return the settings in `--parallel`; `0` turns it off.

    Raises: CommandError.
    """
    if text == "0":
        return {"threads": 0}
    found = {}
    for part in text.split(","):
        match = re.fullmatch(r"(threads|batch|batchsize|min|minsize)=(\d+)", part)
        if match is None:
            raise CommandError(6939)
        found[match[1]] = int(match[2])
    return found


def send_parallel(
    request: Request,
    client: Client,
    steps: Iterable[Step],
    reports: Reports,
    threads: Threads,
) -> list[int]:
    """Send steps through several connections; return the numbers of those confirmed."""
    token = secrets.token_hex(8)
    queued = []
    for index, step in enumerate(steps):
        reports.tell(noted(step))
        if step.revision is None:
            remove_step(request, client, step, index)
        else:
            queued.append(
                (token, index, step.path, step.client_path, step.number, _UNTOUCHED)
            )
    done = request.confirmed("step")
    database = request.state.database
    options = {name: "" for name in _KEPT_OPTIONS if request.has(name)}
    with database.writing():
        database.execute(
            "INSERT INTO transfers VALUES (?,?,?,?)",
            *(token, request.user, client.name, json.dumps(options)),
        )
        database.execute_many(
            "INSERT INTO send_queue VALUES (?,?,?,?,?,?)", iter(queued)
        )
    try:
        request.send(
            "client-ReceiveFiles",
            {
                "token": token,
                "peer": threads.connections,
                "blockCount": threads.batch,
                "scanSize": threads.batch_bytes,
                "confirm": replies.DONE,
            },
        )
        # As long as the other connections are busy, this one is silent.
        request.settle(forever=True)
        rows = database.rows(
            "SELECT number FROM send_queue WHERE token=? AND state=?", token, _DONE
        )
    finally:
        with database.writing():
            database.execute("DELETE FROM transfers WHERE token=?", token)
            database.execute("DELETE FROM send_queue WHERE token=?", token)
    return sorted([*done, *(int(str(number)) for (number,) in rows)])


def transmit(request: Request) -> None:
    """Answer `p4 transmit`: send batches of another command's files until none is left.

    Raises: CommandError if the token is unknown, or another user's.
    """
    client = request.get_client()
    token = request.options.get("t", "")
    row = request.state.database.execute(
        "SELECT options FROM transfers WHERE token=? AND user=? AND client=?",
        *(token, request.user, client.name),
    ).fetchone()
    if row is None:
        raise CommandError(7198, usage="transmit -t taskid")
    options = json.loads(row[0])
    most = _LARGEST_AHEAD * request.number("s", default=_BATCH_BYTES)
    underway = deque[int]()
    for batch in _batches(request, token):
        for number, place, revision in batch:
            _send(request, client, options, number, place, revision)
        request.mark()
        underway.append(sum(revision.size for _, _, revision in batch))
        while len(underway) >= _BATCHES_AHEAD or sum(underway) >= most:
            _note_done(request, token)
            underway.popleft()
    for _ in underway:
        _note_done(request, token)
    request.settle()


def _batches(request: Request, token: str) -> Iterator[list[tuple[int, str, Revision]]]:
    """Yield pieces that no other connection has taken."""
    most = request.number("b", default=8)
    most_bytes = request.number("s", default=_BATCH_BYTES)
    columns = ", ".join(f"r.{name}" for name in REVISION_COLUMNS.split(", "))
    database = request.state.database
    while True:
        batch: list[tuple[int, str, Revision]] = []
        with database.writing():
            rows = database.rows(
                f"SELECT q.number, q.place, {columns} FROM send_queue q"
                " JOIN revisions r ON r.path=q.path AND r.revision=q.revision"
                " WHERE q.token=? AND q.state=? ORDER BY q.number LIMIT ?",
                *(token, _UNTOUCHED, most),
            )
            left = most_bytes
            for number, place, *revision in rows:
                made = Revision._make(revision)
                if batch and made.size > left:
                    break
                left -= made.size
                batch.append((int(str(number)), str(place), made))
            _set_state(request, token, [number for number, *_ in batch], _TAKEN)
        if not batch:
            return
        yield batch


def _set_state(request: Request, token: str, numbers: list[int], state: int) -> None:
    request.state.database.execute_many(
        "UPDATE send_queue SET state=? WHERE token=? AND number=?",
        ((state, token, number) for number in numbers),
    )


def _note_done(request: Request, token: str) -> None:
    """Wait for the answers to the oldest batch, and record what they confirm."""
    done = request.confirmed_at_mark("step")
    with request.state.database.writing():
        _set_state(request, token, done, _DONE)


def _send(
    request: Request,
    client: Client,
    options: dict[str, str],
    number: int,
    place: str,
    revision: Revision,
) -> None:
    if "K" in options:
        revision = without_keywords(request.state.content, revision)
    send_file(
        request,
        client,
        revision,
        local=client.local_path(place),
        confirm={"step": number},
        clobber="f" in options,
    )


COMMANDS = (
    Command(
        names=("transmit",),
        most_arguments=0,
        run=transmit,
        usage="transmit -t taskid [-b files] [-s bytes]",
        valued="tbs",
        absent="rp",
        uses_client=True,
    ),
)
