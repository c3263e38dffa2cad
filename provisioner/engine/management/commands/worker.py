"""Run jobs: `python manage.py worker [--queues storage,perforce,host.munich]`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from procrastinate import App, JobContext
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.periodic import PeriodicDeferrer, PeriodicRegistry
from psycopg import AsyncConnection, OperationalError

from provisioner.accounts import origin
from provisioner.engine.fencing import JobLeave
from provisioner.engine.host_settings import why_unfit
from provisioner.engine.job_manager import ClockIsOff, LastingJobManager
from provisioner.engine.worker_pools import Pool, pools_of, unknown_queues
from provisioner.engine.workers import worker_connector
from provisioner.gateways import fence
from provisioner.gateways.hosts.log_files import close_logs
from provisioner.lib import request_ids
from provisioner.lib.databases import DATABASE_WENT_AWAY
from provisioner.lib.garbage import spare_what_is_loaded
from provisioner.lib.migrations import why_not_migrated

log = structlog.get_logger(__name__)

WATCHED_EVERY_SECONDS = 0.25
POLL_EVERY_SECONDS = 1.0
# As sysexits.h has it: EX_SOFTWARE.
FROZEN = 70


class Command(BaseCommand):
    help = (
        "Run jobs of the named queues; without --queues, of all. It runs until it is "
        "told to stop (SIGTERM, SIGINT); only then is the exit code 0."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--queues",
            help="Comma-separated: storage, perforce, host.<site>, p4d.<server>. Every "
            "worker also sweeps and delivers; one that serves host.<site> runs the "
            "commands of that site as well. p4d.<server> is for a worker on the host "
            "of that Perforce server.",
        )
        parser.add_argument(
            "--concurrency", type=at_least_one, default=settings.WORKER_CONCURRENCY
        )
        parser.add_argument(
            "--commands",
            type=at_least_none,
            default=settings.WORKER_COMMANDS,
            help="Builds and tests at a time; 0: none.",
        )
        parser.add_argument(
            "--bisections",
            type=at_least_none,
            default=settings.WORKER_BISECTIONS,
            help="Commands of bisections at a time, beside those; 0: none.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        queues = [name for name in (options["queues"] or "").split(",") if name]
        if unknown := unknown_queues(queues):
            raise CommandError(
                f"There is no queue {', '.join(unknown)}: name storage, perforce, "
                "host.SITE, p4d.SERVER or sandboxes.HOST."
            )
        alive_in = Path(settings.WORKER_ALIVE_FILE).parent
        if not alive_in.is_dir():
            raise CommandError(
                f"WORKER_ALIVE_FILE cannot be written: {alive_in} is no directory."
            )
        pools = pools_of(
            queues or None,
            slots=options["concurrency"],
            command_slots=options["commands"],
            bisection_slots=options["bisections"],
        )
        if why := why_unfit(pools):
            raise CommandError(why)
        try:
            close_logs(settings.LOG_DIR)
        except OSError as error:
            # Much can be done without; steps that need a log say so and wait.
            log.error("logs_are_not_writable", error=str(error))
        spare_what_is_loaded()
        if not asyncio.run(Working(pools).work()):
            raise CommandError("The worker ended without being told to stop.")


def at_least_one(text: str) -> int:
    return _number(text, least=1)


def at_least_none(text: str) -> int:
    return _number(text, least=0)


def _number(text: str, *, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"has to be a number from {least} on")
    return int(text)


class Working:
    """The pools of one worker, side by side until it is told to stop."""

    def __init__(self, pools: list[Pool]) -> None:
        self._pools = pools
        self._managers: list[LastingJobManager] = []
        self._told = asyncio.Event()

    async def work(self) -> bool:
        """Run jobs until told to stop; return whether somebody ordered the stop."""
        threading.Thread(target=end_where_frozen, daemon=True).start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told.set)
        # Steps are synchronous: each running one holds a thread.
        threads = sum(pool.slots for pool in self._pools) + 2
        loop.set_default_executor(
            ThreadPoolExecutor(max_workers=threads, thread_name_prefix="step")
        )
        with app.replace_connector(worker_connector()) as first:
            if not await self._meet_the_database():
                return True
            async with first.open_async():
                return await self._run_all(first)

    async def _meet_the_database(self) -> bool:
        """Wait for the database; return whether it answered before the stop.

        Raises: CommandError if it is not migrated.
        """
        is_said = False
        while not self._told.is_set():
            try:
                async with await AsyncConnection.connect(**connector_params()):
                    pass
                if why := await sync_to_async(why_not_migrated)():
                    raise CommandError(why)
                return True
            except (OperationalError, *DATABASE_WENT_AWAY) as error:
                if not is_said:
                    log.warning("database_is_away", why=str(error))
                is_said = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), POLL_EVERY_SECONDS)
        return False

    async def _run_all(self, first: App) -> bool:
        # Periodic jobs register when they are imported.
        first.perform_import_paths()  # type: ignore[no-untyped-call]
        registry, first.periodic_registry = first.periodic_registry, _no_periodic_jobs()
        apps = [first, *(_beside(first) for _ in self._pools[1:])]
        running = [
            asyncio.create_task(self._run(one, pool))
            for one, pool in zip(apps, self._pools, strict=True)
        ]
        running.append(asyncio.create_task(self._show_that_we_hear()))
        running.append(asyncio.create_task(defer_periodic_jobs(registry)))
        told = asyncio.create_task(self._told.wait())
        await asyncio.wait([told, *running], return_when=asyncio.FIRST_COMPLETED)
        was_told = told.done()
        self._told.set()
        for task in running:
            task.cancel()  # a worker finishes the jobs that it has
        ends = await asyncio.gather(*running, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                log.error("worker_broke", exc_info=end)
        return was_told

    async def _run(self, one: App, pool: Pool) -> None:
        manager = LastingJobManager(
            one.connector,
            pool=pool,
            is_stopping=self._told.is_set,
            knows=one.tasks.__contains__,
        )
        one.job_manager = manager
        self._managers.append(manager)
        await one.run_worker_async(
            queues=pool.queues,  # type: ignore[arg-type]  # None: all queues
            concurrency=pool.slots,
            fetch_job_polling_interval=1.0,
            update_heartbeat_interval=settings.WORKER_HEARTBEAT_SECONDS,
            stalled_worker_timeout=settings.WORKER_STALLED_SECONDS,
            delete_jobs="successful",
            worker_middleware=[in_its_name],
            install_signal_handlers=False,
            additional_context={"pool": pool, "is_stopping": self._told.is_set},
        )

    async def _show_that_we_hear(self) -> None:
        """Touch WORKER_ALIVE_FILE while job notifications reach all pools."""
        while True:
            await asyncio.sleep(settings.WORKER_HEARTBEAT_SECONDS)
            silent = max(manager.silent_seconds for manager in self._managers)
            if settings.WORKER_ALIVE_FILE and silent < settings.WORKER_STALLED_SECONDS:
                try:
                    Path(settings.WORKER_ALIVE_FILE).touch()
                except OSError as error:
                    log.error("alive_file_is_not_writable", error=str(error))


async def defer_periodic_jobs(registry: PeriodicRegistry) -> None:
    """Queue what is due, while our clock is right.

    A deferrer remembers what it deferred last. One that saw a wrong time would wait
    until that time comes, so it is replaced.
    """
    while True:
        try:
            await PeriodicDeferrer(registry).worker()
        except ClockIsOff:
            await asyncio.sleep(settings.WORKER_HEARTBEAT_SECONDS)


async def in_its_name(call_next: Any, context: JobContext, worker: object) -> Any:
    """Run a job with fencing, the audit log's origin set to its worker, and an id.

    One that runs a step takes over the id of the request that asked for it.
    """
    job = context.job
    request_ids.follow("")
    via = f"worker {socket.gethostname()}, job {job.id} ({job.task_name})"
    with origin.coming_from(origin.Origin(via=via)), fence.asking(JobLeave(job)):
        return await call_next()


def end_where_frozen() -> None:
    """End this process if it, or its machine, was stopped for too long.

    Others have its steps by then, and fencing stops anything that it would still do.
    """
    while True:
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        time.sleep(WATCHED_EVERY_SECONDS)
        slept = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        if slept > settings.WORKER_STALLED_SECONDS:
            os.write(2, b"This worker was stopped for too long and ends.\n")
            os._exit(FROZEN)


def _beside(first: App) -> App:
    """Return an app with the same tasks and connections that defers nothing itself.

    Procrastinate allows one worker for an app.
    """
    beside = App(connector=first.connector)
    beside.tasks = first.tasks
    beside.periodic_registry = _no_periodic_jobs()
    return beside


def _no_periodic_jobs() -> PeriodicRegistry:
    return PeriodicRegistry()  # type: ignore[no-untyped-call]
