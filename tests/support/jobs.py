"""Run queued jobs in tests, for a limited time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Iterator
from typing import Any, TypeVar

from django.db.models import Min
from django.utils import timezone
from procrastinate import App, PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.contrib.django.utils import connector_params
from procrastinate.periodic import PeriodicRegistry
from procrastinate.tasks import Task

from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.mirrors.models import Mirror
from provisioner.qualification.models import QualificationRun
from provisioner.sandboxes.models import Sandbox
from provisioner.workspaces.models import Workspace

Subject = TypeVar(
    "Subject", Workspace, Template, Mirror, WorkspaceCopy, Sandbox, QualificationRun
)

SETTLED_WITHIN_SECONDS = 90.0
POLL_EVERY_SECONDS = 0.1


def queue_sweep(sweep: Task[..., Any, ...]) -> int:
    """Queue what the clock would queue; return the id of the job."""
    return app.configure_task(sweep.name).defer(timestamp=0)


class Jobs:
    """Runs jobs in one event loop, over connections that it keeps.

    Opening a loop and a connection for each run takes longer than most jobs.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        # One connection to begin with: most have few jobs, and each costs its start.
        self._connector = PsycopgConnector(
            kwargs=connector_params(), min_size=1, max_size=2
        )

    def run(self, queues: list[str] | None) -> None:
        self._runner.run(self._work(queues))

    async def _work(self, queues: list[str] | None) -> None:
        await self._connector.open_async()
        with (
            app.replace_connector(self._connector) as worker_app,
            _no_clock(worker_app),
        ):
            await worker_app.run_worker_async(
                queues=queues,  # type: ignore[arg-type]  # None: all queues
                wait=False,
                listen_notify=False,
                install_signal_handlers=False,
                # Whoever is not heard may not act.
                update_heartbeat_interval=1.0,
            )

    def close(self) -> None:
        self._runner.run(self._connector.close_async())
        self._runner.close()


def run_jobs_once(*, queues: list[str] | None = None) -> None:
    """Run what may run now, and what that queues; of these queues, or of all.

    What is due by the clock does not run: a test queues it, or calls it.
    """
    if threading.current_thread() is threading.main_thread():
        jobs_of_tests().run(queues)
    else:
        with contextlib.closing(Jobs()) as jobs:
            jobs.run(queues)


@functools.cache
def jobs_of_tests() -> Jobs:
    """Return what runs the jobs of all tests of this process."""
    return Jobs()


def leave_jobs() -> None:
    """Close the connections and the loop of this process, where there are any."""
    if jobs_of_tests.cache_info().currsize:
        jobs_of_tests().close()
        jobs_of_tests.cache_clear()


@contextlib.contextmanager
def _no_clock(worker_app: App) -> Iterator[None]:
    registry = worker_app.periodic_registry
    worker_app.periodic_registry = PeriodicRegistry()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        worker_app.periodic_registry = registry


def perform_again(step: Step) -> StepResult | None:
    """Run another attempt at a step that is done, as after an answer that was lost."""
    with under_way_again(step):
        return workflow.perform(step)


@contextlib.contextmanager
def under_way_again(step: Step) -> Iterator[None]:
    """Mark a finished step as running for a while, and write what it then wants."""
    row = Step.objects.filter(pk=step.pk)
    row.update(state=Step.State.RUNNING)
    try:
        yield
        for write in step.when_done:
            write()
    finally:
        row.update(state=step.state)


def settle(subject: Subject) -> Subject:
    """Run jobs, with those that wait for a retry, until the subject stands still."""
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while True:
        run_jobs_once()
        subject.refresh_from_db()
        running = subject.operations.filter(state=Operation.State.RUNNING)
        if not running.exists():
            return subject
        assert time.monotonic() < ends, list(
            running.get().steps.values_list("name", "state", "error_message")
        )
        time.sleep(min(_pause_seconds(), max(ends - time.monotonic(), 0.0)))


def _pause_seconds() -> float:
    """Return for how long nothing can run: until the first retry, where all are."""
    waiting = ProcrastinateJob.objects.filter(status="todo")
    later = waiting.filter(scheduled_at__gt=timezone.now())
    first = later.aggregate(first=Min("scheduled_at"))["first"]
    if first is None or waiting.count() > later.count():
        return POLL_EVERY_SECONDS
    seconds: float = (first - timezone.now()).total_seconds()
    return max(seconds, 0.0)
