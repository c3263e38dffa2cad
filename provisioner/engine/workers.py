"""What workers report about themselves, and the workers alive now."""

from __future__ import annotations

import datetime as dt
import os
import socket
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.conf import settings
from procrastinate import PsycopgConnector
from procrastinate.contrib.django.models import ProcrastinateWorker
from procrastinate.contrib.django.utils import connector_params
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from provisioner import __version__
from provisioner.engine.models import WorkerQueues
from provisioner.engine.queues import OWN_SLOTS, own_slots_of
from provisioner.engine.worker_pools import Pool
from provisioner.gateways.hosts.kernels import kernel_release
from provisioner.gateways.hosts.mounts import NfsUse, nfs_uses
from provisioner.lib import clocks
from provisioner.lib.databases import close_unusable_connection
from provisioner.lib.typed_json import from_json, to_json

ANSWER_WITHIN_SECONDS = 5.0
CHECKED_FOR_SECONDS = 1.0


def worker_connector() -> PsycopgConnector:
    """Return a worker's database connection for jobs.

    Each query is one statement, so none needs a transaction with two more round trips.
    """
    return PsycopgConnector(
        kwargs=connector_params(),
        configure=_commit_at_once,
        pool_factory=_pool,
        # Its own pauses double up to minutes; who asks here asks again sooner.
        timeout=ANSWER_WITHIN_SECONDS,
        reconnect_timeout=ANSWER_WITHIN_SECONDS,
    )


async def _commit_at_once(connection: AsyncConnection[Any]) -> None:
    await connection.set_autocommit(True)


def _pool(**options: Any) -> AsyncConnectionPool[AsyncConnection[Any]]:
    return AsyncConnectionPool(**{**options, "check": _check_if_idle})


async def _check_if_idle(connection: Any) -> None:
    """Check a connection of the pool, unless it was lent within a second.

    While many jobs run, a check before each query doubles the queries. One that fails
    without it is repeated (job_manager.py).
    """
    now = time.monotonic()
    lent_at, connection.lent_at = getattr(connection, "lent_at", 0.0), now
    if now - lent_at > CHECKED_FOR_SECONDS:
        await AsyncConnectionPool.check_connection(connection)


def tell_queues(worker_id: int, *, pool: Pool) -> None:
    """Save the queues of a worker's pool, and delete rows of former workers.

    Called outside jobs, like `tell_clock`: nothing else repairs a broken connection.
    """
    close_unusable_connection()
    WorkerQueues.objects.update_or_create(
        worker_id=worker_id,
        defaults={
            "queues": None if pool.queues is None else list(pool.queues),
            "own": pool.own,
            "host": socket.gethostname(),
            "process_id": os.getpid(),
            "release": __version__,
            "kernel": kernel_release(),
            "nfs_uses": to_json(nfs_uses()),
        },
    )
    known = ProcrastinateWorker.objects.values("pk")
    WorkerQueues.objects.exclude(worker_id=worker_id).exclude(
        worker_id__in=known
    ).delete()


def tell_clock(worker_id: int, *, ahead_seconds: float) -> None:
    """Save how far a worker's clock is ahead; 0 if it is right."""
    close_unusable_connection()
    WorkerQueues.objects.filter(worker_id=worker_id).update(
        clock_ahead_seconds=ahead_seconds
    )


@dataclass(frozen=True, kw_only=True)
class AliveWorker:
    """A worker that sent a heartbeat lately; `queues` is None if it serves all.

    `own` are the OWN_SLOTS that it has: even one whose queues are None may lack some.
    `clock_trouble` says what is wrong with its clock; then it serves nothing. `kernel`
    and `nfs_uses` are what its host had when it started. `release` is its own.
    """

    host: str
    process_id: int
    queues: list[str] | None
    started_at: dt.datetime
    heard_at: dt.datetime
    own: tuple[str, ...] = OWN_SLOTS
    release: str = __version__
    clock_ahead_seconds: float = 0.0
    kernel: str = ""
    nfs_uses: tuple[NfsUse, ...] = ()

    @property
    def clock_trouble(self) -> str:
        if clocks.is_right(self.clock_ahead_seconds):
            return ""
        return (
            f"The clock of {self.host} is {clocks.off_text(self.clock_ahead_seconds)}: "
            f"its worker, process {self.process_id}, takes no job. Correct the "
            "clock, and it continues."
        )

    def serves(self, queue: str) -> bool:
        if self.clock_trouble:
            return False
        if self.queues is None:
            return own_slots_of(queue) in ("", *self.own)
        return queue in self.queues


# The ORM takes longer to put this together than it takes to answer.
_ALIVE = """
    SELECT queues.*, worker.last_heartbeat AS heard_at
    FROM engine_workerqueues AS queues
    JOIN procrastinate_workers AS worker ON worker.id = queues.worker_id
    WHERE worker.last_heartbeat >= statement_timestamp() - %s
    ORDER BY queues.host, queues.process_id, queues.own
"""


def alive_workers() -> list[AliveWorker]:
    """Return the workers that sent a heartbeat lately, by host. One query."""
    stalled = dt.timedelta(seconds=settings.WORKER_STALLED_SECONDS)
    rows = WorkerQueues.objects.raw(_ALIVE, [stalled])
    return [
        _as_one(list(pools))
        for _, pools in groupby(rows, key=lambda row: (row.host, row.process_id))
    ]


def unserved(queues: Iterable[str], workers: Collection[AliveWorker]) -> list[str]:
    """Return the queues that none of the workers serves."""
    return [q for q in queues if not any(worker.serves(q) for worker in workers)]


def _as_one(pools: list[Any]) -> AliveWorker:
    """Return the worker that has these pools."""
    serves_all = any(pool.queues is None for pool in pools)
    return AliveWorker(
        host=pools[0].host,
        process_id=pools[0].process_id,
        queues=None if serves_all else [q for pool in pools for q in pool.queues or ()],
        started_at=min(pool.started_at for pool in pools),
        heard_at=min(pool.heard_at for pool in pools),
        own=tuple(pool.own for pool in pools if pool.own),
        release=pools[0].release,
        clock_ahead_seconds=max((p.clock_ahead_seconds for p in pools), key=abs),
        kernel=pools[0].kernel,
        nfs_uses=tuple(from_json(NfsUse, each) for each in pools[0].nfs_uses),
    )
