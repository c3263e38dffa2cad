"""Workers killed by `kill -9` in the middle of steps, one after the other."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation, Step
from tests.support.forkserver import Warm, warm
from tests.support.lab import Lab

SETTLED_WITHIN_SECONDS = 60.0
POLL_EVERY_SECONDS = 0.03
# Every remote call takes this long, so that a step lasts long enough to be killed in.
LATENCY_SECONDS = 0.15
# So does the end of each step in the database: some steps make no remote call.
END_OF_STEPS_TAKES_LONG = f"""
    CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep({LATENCY_SECONDS}); RETURN NEW; END $$;
    CREATE TRIGGER take_long BEFORE UPDATE ON {Step._meta.db_table} FOR EACH ROW
    WHEN (OLD.name IN (%s) AND NEW.state = '{Step.State.DONE}')
    EXECUTE FUNCTION take_long();
"""


@pytest.fixture(scope="module")
def warm_worker(django_db_setup: None, lab: Lab) -> Iterator[Warm]:
    with warm(
        {
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "ONTAP_PASSWORD": lab.ontap["password"],
            "P4PASSWD": lab.perforce["password"],
            "LOG_DIR": str(lab.root / "logs"),
            "WORKER_HEARTBEAT_SECONDS": "0.3",
            "WORKER_STALLED_SECONDS": "1.5",
        }
    ) as warm_worker:
        yield warm_worker


@pytest.fixture
def start_worker(
    warm_worker: Warm, lab: Lab, jobs_emptied: None, tmp_path: Path
) -> Iterator[Callable[..., Child]]:
    started: list[Child] = []

    def start(*arguments: str) -> Child:
        name = f"worker{len(started)}"
        command = manage("worker", *arguments)
        worker = Child(name, command, log_dir=tmp_path, start=warm_worker)
        started.append(worker)
        return worker

    yield start
    # What it sweeps at that moment would go on, at the pace that was set for steps.
    lab.break_ontap()
    lab.break_perforce()
    for worker in started:
        worker.stop()


@contextmanager
def slow_ends(*names: str) -> Iterator[None]:
    """Have the end of each of these steps take long enough to be killed in."""
    with connection.cursor() as cursor:
        said = ", ".join(f"'{name}'" for name in names)
        cursor.execute(END_OF_STEPS_TAKES_LONG % said)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION take_long CASCADE")


def wait_for(is_so: Callable[[], bool], *, worker: Child) -> None:
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not is_so():
        assert worker.is_running, f"It ended by itself: {worker.last_lines()}"
        assert time.monotonic() < ends, what_is_left(worker)
        time.sleep(POLL_EVERY_SECONDS)


def what_is_left(worker: Child) -> str:
    """Say who waits for what: without it, a hang that is rare stays a riddle."""
    steps = Step.objects.values_list("name", "state", "attempt", "error_message")
    jobs = ProcrastinateJob.objects.exclude(status="succeeded").values()
    return "\n".join([*map(str, steps), *map(str, jobs), worker.last_lines(count=40)])


def kill_in_steps(
    operation: Operation, *, names: set[str], start_worker: Callable[[], Child]
) -> None:
    """Kill a worker in each of these steps that is seen to run, until the end.

    Whatever was killed in is taken out of `names`.
    """
    seen: list[str] = []

    def is_time() -> bool:
        operation.refresh_from_db()
        running = operation.steps.filter(state=Step.State.RUNNING, name__in=names)
        seen[:] = running.values_list("name", flat=True)
        return bool(seen) or operation.state != Operation.State.RUNNING

    while operation.state == Operation.State.RUNNING:
        worker = start_worker()
        wait_for(is_time, worker=worker)
        if seen:
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
            names -= set(seen)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
