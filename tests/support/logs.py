"""Commands in the log of a Perforce server, read as a worker reads them."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from provisioner.lib import clocks
from provisioner.server_log.models import LogCommand, ServerLog
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.storing import Batch
from provisioner.sites.models import PerforceServer


def logged(
    user: str,
    words: str,
    locks: str,
    *,
    at: dt.datetime,
    lapse: int,
    pid: int,
    table: str = "db.have",
    program: str = "p4/2025.1/LINUX26X86_64/2700001",
    rows: int = 0,
) -> str:
    """Return the blocks of a command that took `lapse` seconds.

    `locks` are its waits and holds of a table, as the log writes them, and `rows` what
    it scanned of it.
    """
    ended = at + dt.timedelta(seconds=lapse)
    begin = (
        f"\t{at:%Y/%m/%d %H:%M:%S} pid {pid} {user}@{user}-main 10.5.7.21 "
        f"[{program}] '{words}'\n"
    )
    blocks = (
        begin,
        f"\t{ended:%Y/%m/%d %H:%M:%S} pid {pid} completed {lapse}s\n",
        f"{begin}--- lapse {lapse}s\n--- {table}\n"
        f"---   locks read/write 1/0 rows get+pos+scan put+del 0+0+{rows} 0+0\n"
        f"---   total lock wait+held read/write {locks}\n",
    )
    return "".join(f"Perforce server info:\n{block}" for block in blocks)


def store(log: ServerLog, text: str) -> None:
    """Store all that a log in UTC says."""
    parser, batch = LogParser(), Batch(log)
    batch.add(parser.feed(text.encode()))
    batch.add(parser.finish())
    with transaction.atomic():
        batch.save(parser.counts)


def a_sync_that_waited(server: PerforceServer) -> LogCommand:
    """Return a sync of a moment ago that waited for a submit's locks."""
    log, _ = ServerLog.objects.get_or_create(
        server=server, defaults={"path": "/p4/1/logs/log", "is_followed": False}
    )
    at = clocks.database_now() - dt.timedelta(minutes=20)
    second = dt.timedelta(seconds=1)
    submit = logged(
        *("build", "dm-CommitSubmit", "0ms+0ms/0ms+9000ms"),
        at=at,
        lapse=9,
        pid=7001,
    )
    sync = logged(
        *("ann", "user-sync //depot/...", "7500ms+200ms/0ms+0ms"),
        at=at + second,
        lapse=12,
        pid=7002,
    )
    store(log, submit + sync)
    return LogCommand.objects.get(log=log, pid=7002)
