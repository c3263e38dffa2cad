"""What a worker says of itself, and what is known of those that run."""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone
from procrastinate import JobContext, PsycopgConnector
from procrastinate.connector import BaseConnector
from procrastinate.contrib.django.models import ProcrastinateWorker
from procrastinate.contrib.django.utils import connector_params
from procrastinate.jobs import Job, Notification
from procrastinate.manager import JobManager, NotificationCallback
from psycopg import AsyncConnection

from provisioner.accounts import origin
from provisioner.workspaces.models import WorkerQueues


class TellingJobManager(JobManager):
    """Procrastinate's own, whose worker says which queues it serves (None: all).

    It misses no call either: Procrastinate's worker forgets those that come while it
    looks for a job, and would find theirs at its next look by the clock.
    """

    def __init__(self, connector: BaseConnector, *, queues: list[str] | None) -> None:
        super().__init__(connector)
        self.queues = queues
        self._calls = 0

    async def register_worker(self) -> int:
        worker_id = await super().register_worker()
        await sync_to_async(tell_queues)(worker_id, queues=self.queues)
        return worker_id

    async def fetch_job(
        self, queues: Iterable[str] | None, worker_id: int
    ) -> Job | None:
        while True:
            calls = self._calls
            job = await super().fetch_job(queues, worker_id)
            if job is not None or calls == self._calls:
                return job

    async def listen_for_jobs(
        self,
        *,
        on_notification: NotificationCallback,
        queues: Iterable[str] | None = None,
    ) -> None:
        async def count(*, channel: str, notification: Notification) -> None:
            self._calls += 1
            await on_notification(channel=channel, notification=notification)

        await super().listen_for_jobs(on_notification=count, queues=queues)


def worker_connector() -> PsycopgConnector:
    """Return how a worker asks for jobs: each of its questions is one statement.

    So none needs a transaction around it, which would be two more round trips.
    """
    return PsycopgConnector(kwargs=connector_params(), configure=_commit_at_once)


async def _commit_at_once(connection: AsyncConnection[Any]) -> None:
    await connection.set_autocommit(True)


def tell_queues(worker_id: int, *, queues: list[str] | None) -> None:
    """Write down what a worker serves, and forget those that are no more."""
    WorkerQueues.objects.update_or_create(
        worker_id=worker_id,
        defaults={
            "queues": queues,
            "host": socket.gethostname(),
            "process_id": os.getpid(),
        },
    )
    known = ProcrastinateWorker.objects.values("pk")
    WorkerQueues.objects.exclude(worker_id=worker_id).exclude(
        worker_id__in=known
    ).delete()


@dataclass(frozen=True, kw_only=True)
class AliveWorker:
    """A worker that was heard lately; `queues` None: it serves all."""

    host: str
    process_id: int
    queues: list[str] | None
    started_at: dt.datetime
    heard_at: dt.datetime

    def serves(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues


def alive_workers() -> list[AliveWorker]:
    """Return the workers that were heard lately, by host."""
    since = timezone.now() - dt.timedelta(seconds=settings.WORKER_STALLED_SECONDS)
    heard = dict(
        ProcrastinateWorker.objects.filter(last_heartbeat__gte=since).values_list(
            "pk", "last_heartbeat"
        )
    )
    return [
        AliveWorker(
            host=worker.host,
            process_id=worker.process_id,
            queues=worker.queues,
            started_at=worker.started_at,
            heard_at=heard[worker.worker_id],
        )
        for worker in WorkerQueues.objects.filter(worker_id__in=heard).order_by(
            "host", "process_id"
        )
    ]


def served_queues() -> set[str] | None:
    """Return the queues that workers serve that were heard lately; None: all."""
    served: set[str] = set()
    for worker in alive_workers():
        if worker.queues is None:
            return None
        served.update(worker.queues)
    return served


async def with_origin(call_next: Any, context: JobContext, worker: object) -> Any:
    """Say for the trail which worker's job does what it does."""
    job = context.job
    via = f"worker {socket.gethostname()}, job {job.id} ({job.task_name})"
    with origin.coming_from(origin.Origin(via=via)):
        return await call_next()
