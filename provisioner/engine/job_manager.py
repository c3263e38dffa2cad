"""Procrastinate's job manager, made to outlive its database.

A worker's listener, heartbeat and bookkeeping go through here. When the database goes
away, they retry with doubling pauses for as long as it takes. So neither a restart of
PostgreSQL nor an outage of a whole night ends a worker or leaves a job in "doing".
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import psycopg
import structlog
from asgiref.sync import sync_to_async
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import (
    JobManager,
    NotificationCallback,
    get_channel_for_queues,
)

from provisioner.engine.failovers import began_lately
from provisioner.engine.queues import OWN_SLOTS
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import tell_clock, tell_queues
from provisioner.lib import clocks
from provisioner.lib.databases import DATABASE_WENT_AWAY

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
# How often pools fetch at most that hear of all jobs and run few of them.
GATHERED_FOR_SECONDS = 0.5
OUR_CALL = "heard"
JOB_INSERTED = "job_inserted"
# A worker of another release takes it meanwhile, or meets it again then.
LEFT_FOR_SECONDS = 2.0

Answer = TypeVar("Answer")

DOES_NOT_ANSWER = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    *DATABASE_WENT_AWAY,
)

# The worker's own statements: Procrastinate has none for these.
FETCH_OF_KIND = """
    WITH of_kind AS MATERIALIZED (
        SELECT coalesce(array_agg(DISTINCT queue_name), ARRAY[]::varchar[]) AS names
        FROM procrastinate_jobs
        WHERE status = 'todo' AND coalesce(
            (SELECT own FROM unnest(%(all_own)s::text[]) AS own
             WHERE starts_with(queue_name, own)), '') = %(own)s
    )
    SELECT names, id, status, task_name, priority, lock, queueing_lock, args,
           scheduled_at, queue_name, attempts, worker_id
    FROM of_kind, procrastinate_fetch_job_v2(names, %(worker_id)s)
"""
# How long the queues that have jobs are known: to find them, all jobs that wait are
# read. A new one waits so long at most, and only while the others have jobs.
QUEUES_KNOWN_SECONDS = 1.0
# The call comes back to whoever sent it, over the connection that calls come by.
BEAT = """
    WITH beat AS (
        UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = %(worker_id)s
        RETURNING id
    )
    SELECT EXISTS (SELECT 1 FROM beat) AS is_known,
        extract(epoch FROM clock_timestamp())::float8 AS now,
        pg_notify(%(channel)s, %(payload)s)
"""
WHAT_TIME = "SELECT extract(epoch FROM clock_timestamp())::float8 AS now"
REGISTER_AGAIN = """
    INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE
    VALUES (%(worker_id)s) ON CONFLICT DO NOTHING
"""
# A job where it still is with the worker it was read with: locked until it is settled.
OF_ITS_WORKER = """
    WITH its AS MATERIALIZED (
        SELECT id FROM procrastinate_jobs
        WHERE id = %(job_id)s AND status = 'doing'
            AND worker_id IS NOT DISTINCT FROM %(worker_id)s
        FOR UPDATE
    )
    SELECT id, {act} FROM its
"""
FINISH = OF_ITS_WORKER.format(
    act="procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s)"
)
RETRY = OF_ITS_WORKER.format(
    act="procrastinate_retry_job_v2("
    "id, %(retry_at)s, %(priority)s, %(queue)s, %(lock)s)"
)
# No attempt was made, so none is counted.
LEAVE_TO_OTHERS = """
    UPDATE procrastinate_jobs SET status = 'todo',
        scheduled_at = now() + %(seconds)s * interval '1 second'
    WHERE id = %(job_id)s AND status = 'doing' AND worker_id = %(worker_id)s
    RETURNING id
"""
LATER_PERIOD = """
    SELECT EXISTS (SELECT 1 FROM procrastinate_periodic_defers
        WHERE task_name = %(task_name)s AND periodic_id = %(periodic_id)s
            AND defer_timestamp > %(defer_timestamp)s) AS is_later,
        extract(epoch FROM clock_timestamp())::float8 AS now
"""
HELD = """
    SELECT id FROM procrastinate_jobs
    WHERE status = 'doing' AND worker_id = %(worker_id)s
"""


class ClockIsOff(Exception):
    """The clock of this worker is wrong, so it cannot tell what is due."""


def is_away(error: BaseException) -> bool:
    """Return whether an error means that the database does not answer."""
    return isinstance(
        error.__cause__ if isinstance(error, ConnectorException) else error,
        DOES_NOT_ANSWER,
    )


async def finish_of_its_worker(
    connector: BaseConnector,
    *,
    job_id: int | None,
    worker_id: int | None,
    status: Status,
    delete_job: bool,
) -> bool:
    """End a job if its worker still has it; return whether it did."""
    rows = await connector.execute_query_all_async(
        query=FINISH,
        job_id=job_id,
        worker_id=worker_id,
        status=status.value,
        delete_job=delete_job,
    )
    return bool(rows)


async def retry_of_its_worker(
    connector: BaseConnector,
    *,
    job_id: int | None,
    worker_id: int | None,
    retry_at: dt.datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
    lock: str | None = None,
) -> bool:
    """Queue a job again if its worker still has it; return whether it did."""
    rows = await connector.execute_query_all_async(
        query=RETRY,
        job_id=job_id,
        worker_id=worker_id,
        retry_at=retry_at,
        priority=priority,
        queue=queue,
        lock=lock,
    )
    return bool(rows)


class LastingJobManager(JobManager):
    """The job manager of one pool of a worker.

    It misses no job notification: Procrastinate's own worker ignores those that arrive
    while it fetches a job, and would find their jobs only at its next poll.
    """

    def __init__(
        self,
        connector: BaseConnector,
        *,
        pool: Pool,
        is_stopping: Callable[[], bool] = lambda: False,
        knows: Callable[[str], bool] = lambda task_name: True,
    ) -> None:
        """Set the pool's queues.

        `is_stopping` tells whether the worker is to stop, `knows` whether its release
        has a task: those of a newer one are left to workers of that.
        """
        super().__init__(connector)
        self.pool = pool
        self._is_stopping = is_stopping
        self._knows = knows
        self._calls = 0
        self._of_kind: list[str] = []
        self._of_kind_until = 0.0
        self._held: set[int] = set()
        self._may_hold_unknown = False
        self._heard_at = time.monotonic()
        self._worker_id: int | None = None
        self._ahead_seconds = 0.0

    @property
    def _hears_of_others(self) -> bool:
        """Whether most notified jobs are for the shared slots.

        A fetch for each of them would take a tenth of the worker's processor time.
        """
        return bool(self.pool.own) and self.pool.queues is None

    @property
    def silent_seconds(self) -> float:
        """How long ago the listener last heard our own test notification."""
        return time.monotonic() - self._heard_at

    @property
    def is_clock_right(self) -> bool:
        """Return whether our clock last agreed with the database's."""
        return clocks.is_right(self._ahead_seconds)

    # --- what the worker does

    async def fetch_job(
        self, queues: Iterable[str] | None, worker_id: int
    ) -> Job | None:
        """Return a job; None if there is none, or the worker is stopping.

        Also None while the clock is wrong, as jobs would run at the wrong time.
        """
        attempt = 0
        while not self._is_stopping() and self.is_clock_right:
            calls = self._calls
            try:
                if self._may_hold_unknown:
                    await self._give_back_unknown(worker_id)
                job = await self._fetch(queues, worker_id)
                if job is not None and not self._knows(job.task_name):
                    await self._leave_to_others(job)
                    continue
            except ConnectorException as error:
                if isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
                    # Only registered workers are given a job.
                    await self._insist(partial(self._register_again, worker_id))
                elif is_away(error):
                    await self._pause(error, attempt=attempt)
                    attempt += 1
                else:
                    raise
                continue
            if job is not None and job.id is not None:
                self._held.add(job.id)
            if job is not None or calls == self._calls:
                return job
        return None

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        if queues is not None:
            return await super().fetch_job(list(queues), worker_id)
        now = time.monotonic()
        if self._of_kind and now < self._of_kind_until:
            job = await super().fetch_job(self._of_kind, worker_id)
            if job is not None:
                return job
        row = await self.connector.execute_query_one_async(
            query=FETCH_OF_KIND,
            worker_id=worker_id,
            own=self.pool.own,
            all_own=list(OWN_SLOTS),
        )
        self._of_kind = row.pop("names")
        self._of_kind_until = now + QUEUES_KNOWN_SECONDS
        return None if row["id"] is None else Job.from_row(row)

    async def _leave_to_others(self, job: Job) -> None:
        log.warning("job_left_to_others", job_id=job.id, task=job.task_name)
        leave = self.connector.execute_query_all_async
        await self._queue_again(
            partial(
                leave,
                query=LEAVE_TO_OTHERS,
                job_id=job.id,
                worker_id=job.worker_id,
                seconds=LEFT_FOR_SECONDS,
            ),
            job_id=job.id,
            worker_id=job.worker_id,
        )

    async def _give_back_unknown(self, worker_id: int) -> None:
        """Requeue jobs that the database assigns to this worker but it does not run."""
        rows = await self.connector.execute_query_all_async(
            query=HELD, worker_id=worker_id
        )
        for row in rows:
            if row["id"] not in self._held:
                log.warning("lost_job_queued_again", job_id=row["id"])
                # another worker may have done so meanwhile
                of_its_worker = {"job_id": row["id"], "worker_id": worker_id}
                retry = partial(retry_of_its_worker, self.connector, **of_its_worker)
                await self._queue_again(retry, **of_its_worker)
        self._may_hold_unknown = False

    async def _queue_again(
        self,
        queue: Callable[[], Awaitable[object]],
        *,
        job_id: int | None,
        worker_id: int | None,
    ) -> None:
        """Queue a job again, or drop it if an equal one waits: that is as good."""
        try:
            await queue()
        except UniqueViolation:
            await finish_of_its_worker(
                self.connector,
                job_id=job_id,
                worker_id=worker_id,
                status=Status.FAILED,
                delete_job=True,
            )

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job, unless it has ended or another worker has it."""
        finish = partial(
            finish_of_its_worker, self.connector, job_id=job.id, worker_id=job.worker_id
        )
        await self._settle(job, partial(finish, status=status, delete_job=delete_job))

    async def retry_job(
        self,
        job: Job,
        retry_at: dt.datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Queue a job again, unless that was done already, or another worker has it.

        `retry_at` is by our clock; its error is corrected.
        """
        if retry_at is not None:
            retry_at -= dt.timedelta(seconds=self._ahead_seconds)
        retry = partial(
            retry_of_its_worker,
            self.connector,
            job_id=job.id,
            worker_id=job.worker_id,
            retry_at=retry_at,
        )
        await self._settle(
            job, partial(retry, priority=priority, queue=queue, lock=lock)
        )

    async def _settle(self, job: Job, settle: Callable[[], Awaitable[bool]]) -> None:
        """Finish a job, even if the first answer of the database is lost."""
        attempt = 0
        while True:
            try:
                is_settled = await settle()
            except ConnectorException as error:
                if not is_away(error) or self._is_stopping():
                    raise
                await self._pause(error, attempt=attempt)
                attempt += 1
                continue
            if not is_settled:
                log.warning("job_was_settled_before", job_id=job.id)
            if job.id is not None:
                self._held.discard(job.id)
            return

    # --- what goes on beside it

    async def prune_stalled_workers(self, seconds_since_heartbeat: float) -> list[int]:
        """Delete silent workers, waiting for the database if necessary.

        None while all are silent, because the database itself was away: their jobs
        would be taken from them.
        """
        prune = super().prune_stalled_workers

        async def ask() -> list[int]:
            if await began_lately(self.connector):
                return []
            return await prune(seconds_since_heartbeat)

        return await self._insist(ask)

    async def register_worker(self) -> int:
        """Register with the served queues, waiting for the database if necessary."""
        worker_id = await self._insist(super().register_worker)

        async def tell() -> None:
            await sync_to_async(tell_queues)(worker_id, pool=self.pool)
            await self._ask_with_clock(WHAT_TIME)

        self._worker_id = worker_id
        await self._insist(tell)
        return worker_id

    async def update_heartbeat(self, worker_id: int) -> None:
        """Send a heartbeat; register again if this worker was taken for dead."""

        async def beat() -> None:
            row = await self._ask_with_clock(
                BEAT,
                worker_id=worker_id,
                channel=next(iter(get_channel_for_queues(self.pool.queues))),
                payload=json.dumps({"type": OUR_CALL, "worker_id": worker_id}),
            )
            if not row["is_known"]:
                await self._register_again(worker_id)

        self._worker_id = worker_id
        await self._insist(beat)

    async def _register_again(self, worker_id: int) -> None:
        """Register a worker that was taken for dead, under its old number."""
        log.warning("worker_registered_again", worker_id=worker_id)
        await self.connector.execute_query_all_async(
            query=f"{REGISTER_AGAIN} RETURNING id", worker_id=worker_id
        )
        await sync_to_async(tell_queues)(worker_id, pool=self.pool)

    async def unregister_worker(self, worker_id: int) -> None:
        """Unregister. If the database is away, the next worker cleans up."""
        try:
            await super().unregister_worker(worker_id)
        except ConnectorException as error:
            log.warning("worker_not_unregistered", why=str(error))

    async def listen_for_jobs(
        self,
        *,
        on_notification: NotificationCallback,
        queues: Iterable[str] | None = None,
    ) -> None:
        """Listen as long as the worker runs, reconnecting whenever necessary."""

        gathered: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(maxsize=1)

        async def pass_on(channel: str, said: Any) -> None:
            self._calls += 1
            await on_notification(channel=channel, notification=said)

        async def pass_on_gathered() -> None:
            while True:
                await pass_on(*await gathered.get())
                await asyncio.sleep(GATHERED_FOR_SECONDS)

        async def count(*, channel: str, notification: Notification) -> None:
            said: dict[str, Any] = {**notification}
            if said["type"] == OUR_CALL:
                if said["worker_id"] == self._worker_id:
                    self._heard_at = time.monotonic()
            elif said["type"] != JOB_INSERTED or not self._hears_of_others:
                await pass_on(channel, said)
            elif gathered.empty():
                gathered.put_nowait((channel, said))

        listen = super().listen_for_jobs

        async def hear() -> None:
            try:
                async with asyncio.TaskGroup() as both:
                    gathering = both.create_task(pass_on_gathered())
                    await listen(on_notification=count, queues=queues)
                    gathering.cancel()
            except ExceptionGroup as errors:
                first = errors.exceptions[0]
                raise first from first.__cause__

        await self._insist(hear)

    async def defer_periodic_job(
        self, job: Job, periodic_id: str, defer_timestamp: int
    ) -> int | None:
        """Queue a periodic job, waiting for the database if necessary.

        None if another worker has queued it, or a later period: Procrastinate forgets
        the periods before that one, and a worker that was held up would repeat them.

        Raises: ClockIsOff.
        """
        defer = partial(super().defer_periodic_job, job, periodic_id, defer_timestamp)

        async def ask() -> int | None:
            row = await self._ask_with_clock(
                LATER_PERIOD,
                task_name=job.task_name,
                periodic_id=periodic_id,
                defer_timestamp=defer_timestamp,
            )
            if not self.is_clock_right:
                raise ClockIsOff
            return None if row["is_later"] else await defer()

        return await self._insist(ask)

    # --- time

    async def _ask_with_clock(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Return the row of an answer that has the database's time in it, as `now`."""
        asked_at = time.time()
        ask = self.connector.execute_query_all_async
        row: dict[str, Any] = (await ask(query=query, **arguments))[0]
        await self._compare_clocks(asked_at, float(row["now"]), time.time())
        return row

    async def _compare_clocks(
        self, asked_at: float, database: float, answered_at: float
    ) -> None:
        """Compare our clock with the database's, and log each change."""
        was_right = self.is_clock_right
        self._ahead_seconds = clocks.seconds_ahead(
            asked_at=asked_at, database=database, answered_at=answered_at
        )
        if was_right and self.is_clock_right:
            return
        if self._worker_id is not None:
            ahead = 0.0 if self.is_clock_right else self._ahead_seconds
            await sync_to_async(tell_clock)(self._worker_id, ahead_seconds=ahead)
        if was_right != self.is_clock_right:
            say = log.info if self.is_clock_right else log.error
            say(
                "clock_is_right_again" if self.is_clock_right else "clock_is_off",
                ahead_seconds=round(self._ahead_seconds),
                ours=dt.datetime.fromtimestamp(answered_at, tz=dt.UTC).isoformat(),
                of_database=dt.datetime.fromtimestamp(database, tz=dt.UTC).isoformat(),
            )

    # --- patience

    async def _insist(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Retry a query until it is answered, or the worker is stopping."""
        attempt = 0
        while True:
            try:
                return await ask()
            except (ConnectorException, *DOES_NOT_ANSWER) as error:
                if not is_away(error) or self._is_stopping():
                    raise
                await self._pause(error, attempt=attempt)
                attempt += 1

    async def _pause(self, error: BaseException, *, attempt: int) -> None:
        # The database may have given us a job in an answer that was lost.
        self._may_hold_unknown = True
        if not attempt:
            log.warning("database_is_away", why=str(error.__cause__ or error))
        # Beyond some doublings the number itself would be too large.
        pause = FIRST_PAUSE_SECONDS * 2 ** min(attempt, 16)
        await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))
