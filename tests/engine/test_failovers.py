"""A standby takes over: who may act, who is taken for dead, and what is warned of."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.checks import Tags, run_checks
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job
from pytest_django import DjangoDbBlocker

from provisioner.drift.backups import back_up, drill
from provisioner.engine.failovers import standby_trouble
from provisioner.engine.fencing import JobLeave
from provisioner.engine.job_manager import BEAT, LastingJobManager
from provisioner.engine.sweeps import jobs as sweeps
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import worker_connector
from tests.support.jobs import queue_sweep
from tests.support.replication import Pair, dump_of_tests, looking_at, replicated

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]

STALLED_SECONDS = 3.0
WITHIN_SECONDS = 60.0


@pytest.fixture(scope="module")
def dump(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    path = tmp_path_factory.mktemp("dump") / "tests.dump"
    with django_db_blocker.unblock():
        dump_of_tests(path)
    return path


@pytest.fixture
def pair(dump: Path, settings: Any) -> Iterator[Pair]:
    settings.WORKER_STALLED_SECONDS = STALLED_SECONDS
    settings.WORKER_HEARTBEAT_SECONDS = 1.0
    with replicated(dump=dump) as pair:
        yield pair


def job_at_work() -> Job:
    """Return a job of a worker that was heard just now."""
    job_id = queue_sweep(sweeps.sweep_steps)
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        [worker_id] = cursor.fetchone()
    row = ProcrastinateJob.objects.filter(pk=job_id)
    row.update(status="doing", worker_id=worker_id)
    return Job(
        id=job_id,
        worker_id=worker_id,
        task_name="sweep_steps",
        queue="sweeps",
        lock=None,
        queueing_lock=None,
    )


def sweep_once() -> list[int]:
    """Give jobs of silent workers to others; return which workers were deleted."""

    connector = worker_connector()  # of this thread's database

    async def sweep() -> list[int]:
        with app.replace_connector(connector) as one:
            async with one.open_async():
                await sweeps.sweep_jobs.func(timestamp=0)
                manager = LastingJobManager(
                    one.connector, pool=Pool(queues=None, slots=1)
                )
                return await manager.prune_stalled_workers(STALLED_SECONDS)

    return asyncio.run(sweep())


def test_a_former_primary_gives_no_leave_before_the_new_one_gives_jobs_to_others(
    pair: Pair,
) -> None:
    """It still answers a worker that was cut off together with it."""
    with looking_at(pair.url):
        job = job_at_work()
        JobLeave(job)()
        sweep_once()  # the timeline is noted
    pair.standby.promote()
    beating = threading.Thread(target=beat_in_vain, args=[pair, job], daemon=True)
    beating.start()

    ends = time.monotonic() + WITHIN_SECONDS
    was_taken = False
    while True:
        with looking_at(pair.standby.url):
            deleted = sweep_once()
            was_taken = was_taken or ProcrastinateJob.objects.get().status == "todo"
        with looking_at(pair.primary.url):
            is_heard = JobLeave(job)._is_heard()
        if not is_heard:
            break
        assert (was_taken, deleted) == (False, [])
        assert time.monotonic() < ends
        time.sleep(0.1)

    # As far as the former primary knows, the job is with its worker as before.
    assert is_heard is False
    assert beating.is_alive()
    while not was_taken:
        assert time.monotonic() < ends
        with looking_at(pair.standby.url):
            sweep_once()
            was_taken = ProcrastinateJob.objects.get().status == "todo"
        time.sleep(0.1)
    pair.primary.kill()
    beating.join()


def a_beat_of(job: Job) -> dict[str, Any]:
    return {"worker_id": job.worker_id, "channel": "nobody", "payload": ""}


def beat_in_vain(pair: Pair, job: Job) -> None:
    """Send a heartbeat that is never answered: no standby has it."""
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(pair.primary.url, autocommit=True) as worker,
    ):
        worker.execute(BEAT.encode(), a_beat_of(job))


def test_workers_that_are_heard_again_after_a_failover_keep_their_jobs(
    pair: Pair,
) -> None:
    with looking_at(pair.url):
        job = job_at_work()
        sweep_once()
        pair.primary.kill()
        time.sleep(STALLED_SECONDS)  # as long as somebody needs to notice
        pair.standby.promote()
    with looking_at(pair.url):
        assert sweep_once() == []
        with connection.cursor() as cursor:
            cursor.execute(BEAT, a_beat_of(job))

        JobLeave(job)()

        assert ProcrastinateJob.objects.get().status == "doing"


def test_a_standby_and_a_host_that_does_not_answer_are_passed_over(
    pair: Pair, tmp_path: Path
) -> None:
    """Also by the programs of PostgreSQL that backups need."""
    primary, standby = pair.primary.port, pair.standby.port
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        hosts = ",".join(f"127.0.0.1:{each}" for each in (port, standby, primary))
        began = time.monotonic()
        with looking_at(f"postgresql://postgres@{hosts}/postgres"):
            connection.ensure_connection()
            assert connection.connection.info.port == primary
        assert time.monotonic() - began < 20
    with looking_at(
        f"postgresql://postgres@127.0.0.1:{standby},127.0.0.1:{primary}/postgres"
    ):
        back_up(tmp_path / "one.dump")
        assert drill(tmp_path / "one.dump").ahead == []


def test_the_check_before_a_deployment_says_what_a_failover_would_lose(
    pair: Pair,
) -> None:
    assert standby_trouble() == ""  # one host: nothing is asked
    with looking_at(pair.url):
        assert standby_trouble() == ""
        pair.primary.ask("CREATE ROLE plain LOGIN")
    with looking_at(pair.url.replace("postgres@", "plain@")):
        assert standby_trouble() == ""  # who may not look trusts what is set

    wait_for_warning(
        pair,
        "synchronous_commit = local",
        "PostgreSQL does not wait until its standby has written",
    )
    wait_for_warning(
        pair, "synchronous_standby_names = ''", "PostgreSQL waits for no standby"
    )
    pair.primary.configure("synchronous_commit = on")
    pair.standby.kill()
    wait_for_warning(
        pair,
        "synchronous_standby_names = 'b'",
        "No synchronous standby is connected",
    )


def wait_for_warning(pair: Pair, line: str, begins: str) -> None:
    """Configure the primary in this way, and wait until the check warns of it."""
    pair.primary.configure(line)
    ends = time.monotonic() + WITHIN_SECONDS
    while True:
        with looking_at(pair.url):
            found = run_checks(
                tags=[Tags.database],
                include_deployment_checks=True,
                databases=["default"],
            )
        said = [each.msg for each in found if each.id == "cloneyard.W004"]
        if said and said[0].startswith(begins):
            return
        assert time.monotonic() < ends, said
        time.sleep(0.2)
