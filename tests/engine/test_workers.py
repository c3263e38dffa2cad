"""What a worker's process says of itself."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.testing import InMemoryConnector

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.demo.processes import Child, manage
from provisioner.engine import job_manager
from provisioner.engine.deferring import defer
from provisioner.engine.failovers import BEGAN_LATELY
from provisioner.engine.job_manager import WHAT_TIME, LastingJobManager
from provisioner.engine.models import WorkerQueues
from provisioner.engine.queues import (
    LOADS,
    OWN_SLOTS,
    SANDBOXES_PREFIX,
    SERVER_HOST_PREFIX,
)
from provisioner.engine.sweeps import jobs as sweeps
from provisioner.engine.worker_pools import Pool, pools_of
from provisioner.engine.workers import (
    alive_workers,
    tell_clock,
    tell_queues,
    worker_connector,
)
from provisioner.gateways.hosts.kernels import kernel_release
from provisioner.gateways.hosts.mounts import nfs_uses
from tests.support.database_outage import (
    cut_by_the_server,
    cut_off_everybody_else,
    left_in_an_answer,
    let_in,
)
from tests.support.jobs import queue_sweep
from tests.support.requests import workspace_create
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db(transaction=True)

SAID_WITHIN_SECONDS = 60.0
STOPS_WITHIN_SECONDS = 60.0  # the jobs that it runs end first
HEARTBEAT_SECONDS = 0.2
STALLED_SECONDS = 1.0


def wait_for(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + SAID_WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_worker_says_what_it_serves_and_the_audit_log_which_worker_it_was(
    alice: User, snapshot: Snapshot, jobs_emptied: None, tmp_path: Path
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")  # lost: nothing runs them
    queue_sweep(sweeps.sweep_steps)
    worker = Child(
        "worker",
        manage("worker", "--queues", "host.nowhere"),
        log_dir=tmp_path,
        environment={"DATABASE_NAME": connection.settings_dict["NAME"]},
    )
    try:
        wait_for(WorkerQueues.objects.exists)
        # Each of its pools says what it serves when it starts.
        served = {"host.nowhere", "sweeps", "deliveries"}
        served |= {"commands.nowhere", "bisections.nowhere"}
        wait_for(lambda: [set(w.queues or ()) for w in alive_workers()] == [served])
        [said] = alive_workers()
        assert set(said.own) == {*OWN_SLOTS} - {
            *(SERVER_HOST_PREFIX, SANDBOXES_PREFIX, LOADS),
        }
        healed = Event.objects.filter(kind="operation_healed", workspace=workspace)
        wait_for(healed.exists)
    finally:
        worker.stop(within_seconds=STOPS_WITHIN_SECONDS)

    event = healed.latest("pk")
    assert event.via.startswith(f"worker {socket.gethostname()}, job ")
    assert event.via.endswith("(sweep_steps)")


class CalledWhileItPolls(InMemoryConnector):
    """Has no job; a call for one comes while the first question is under way."""

    def __init__(self, manager_of: Callable[[], LastingJobManager]) -> None:
        super().__init__()
        self.manager_of = manager_of
        self.questions = 0

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        self.questions += 1
        if self.questions == 1:
            await self.manager_of().listen_for_jobs(on_notification=self.forget)
        return {"id": None, "names": []}

    async def listen_notify(self, on_notification: Any, channels: object) -> None:
        await on_notification(channel="jobs", payload='{"type": "job_inserted"}')

    async def forget(self, **said: object) -> None:
        """Do as Procrastinate's worker does while it looks for a job."""


def test_a_call_during_a_workers_search_for_jobs_is_not_missed() -> None:
    connector = CalledWhileItPolls(lambda: manager)
    pool = Pool(queues=None, slots=1)
    manager = LastingJobManager(connector, pool=pool)

    assert asyncio.run(manager.fetch_job(None, worker_id=1)) is None

    assert connector.questions == 2


class CalledForOthers(InMemoryConnector):
    """Calls for jobs of other pools until it is enough."""

    def __init__(self, *, enough: Callable[[], bool]) -> None:
        super().__init__()
        self.enough = enough
        self.calls = 0

    async def listen_notify(self, on_notification: Any, channels: object) -> None:
        ends = time.monotonic() + SAID_WITHIN_SECONDS
        while not self.enough() and time.monotonic() < ends:
            self.calls += 1
            await on_notification(channel="jobs", payload='{"type": "job_inserted"}')
            await asyncio.sleep(0)


def listened(on_notification: Any, *, enough: Callable[[], bool]) -> int:
    """Listen as a pool that hears of all jobs and runs few; return the calls."""
    connector = CalledForOthers(enough=enough)
    pool = Pool(queues=None, slots=1, own=OWN_SLOTS[0])
    manager = LastingJobManager(connector, pool=pool)
    asyncio.run(manager.listen_for_jobs(on_notification=on_notification))
    return connector.calls


def test_calls_for_jobs_of_other_pools_are_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_manager, "GATHERED_FOR_SECONDS", 0.1)
    heard: list[dict[str, object]] = []

    async def hear(**said: object) -> None:
        heard.append(said)

    calls = listened(hear, enough=lambda: len(heard) == 2)

    assert len(heard) == 2
    assert calls > 2


def test_an_error_while_calls_are_gathered_ends_the_listener() -> None:
    async def break_down(**said: object) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        listened(break_down, enough=lambda: False)


def slots_for(
    queues: list[str] | None, *, slots: int = 16, commands: int = 4, bisections: int = 2
) -> list[Pool]:
    return pools_of(
        queues, slots=slots, command_slots=commands, bisection_slots=bisections
    )


def test_commands_have_slots_of_their_own() -> None:
    pools = slots_for(["storage", "host.munich"])

    assert [(pool.queues, pool.slots) for pool in pools] == [
        (("storage", "host.munich", "sweeps"), 16),
        (("deliveries",), 4),
        (("commands.munich",), 4),
        (("bisections.munich",), 2),
    ]
    for queue, at in (("host.munich", 0), ("deliveries", 1), ("commands.munich", 2)):
        assert [pool.serves(queue) for pool in pools] == [n == at for n in range(4)]


def test_a_worker_of_all_queues_has_slots_for_everything() -> None:
    pools = slots_for(None)

    for queue, at in (
        *(("storage", 0), ("host.anywhere", 0), ("sweeps", 0), ("deliveries", 1)),
        *(("commands.anywhere", 2), ("bisections.anywhere", 3), ("loads", 4)),
    ):
        assert [pool.serves(queue) for pool in pools] == [n == at for n in range(5)]


def test_who_reaches_perforce_reads_the_load_there_in_slots_of_its_own() -> None:
    def of_loads(*queues: str) -> list[bool]:
        return [pool.serves("loads") for pool in slots_for([*queues])]

    assert of_loads("perforce") == [False, False, True]
    assert of_loads("storage", "host.munich") == [False] * 4


def test_a_worker_may_run_no_commands_or_nothing_else() -> None:
    others, deliveries = slots_for(["host.munich"], commands=0, bisections=0)
    assert (others.own, deliveries.own) == ("", "deliveries")

    sweeper, _, commands = slots_for(["commands.munich"], slots=1)
    assert sweeper.queues == ("sweeps",)
    assert commands.queues == ("commands.munich",)


@pytest.mark.django_db(transaction=True)
def test_however_many_bisections_and_deliveries_wait_others_find_a_slot(
    jobs_emptied: None,
) -> None:
    """A worker that serves all queues gives each of its pools its own jobs."""
    queues = (
        *("bisections.munich", "bisections.munich", "deliveries", "deliveries"),
        *("commands.munich", "storage", "loads"),
    )
    for queue in queues:
        defer(app.configure_task("anything", queue=queue, allow_unknown=True))
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        [worker_id] = cursor.fetchone()

    async def given() -> list[str | None]:
        with app.replace_connector(worker_connector()) as one:
            async with one.open_async():
                managers = [
                    LastingJobManager(one.connector, pool=pool)
                    for pool in reversed(slots_for(None))
                ]
                jobs = [await each.fetch_job(None, worker_id) for each in managers]
        return [job.queue if job else None for job in jobs]

    assert asyncio.run(given()) == [
        *("loads", "bisections.munich", "commands.munich"),
        *("deliveries", "storage"),
    ]


@pytest.mark.django_db(transaction=True)
def test_a_lost_job_that_another_worker_queues_again_ends_no_worker(
    jobs_emptied: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    defer(app.configure_task("anything", queue="storage", allow_unknown=True))
    # What was read a moment ago: since then the job waits again.
    monkeypatch.setattr(job_manager, "HELD", "SELECT id FROM procrastinate_jobs")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        [worker_id] = cursor.fetchone()

    async def fetched() -> Job | None:
        with app.replace_connector(worker_connector()) as one:
            async with one.open_async():
                pool = Pool(queues=None, slots=1)
                manager = LastingJobManager(one.connector, pool=pool)
                manager._may_hold_unknown = True
                return await manager.fetch_job(["storage"], worker_id)

    job = asyncio.run(fetched())

    assert job is not None
    assert (job.queue, job.attempts) == ("storage", 0)


def started(tmp_path: Path) -> Child:
    return Child(
        "worker",
        manage("worker"),
        log_dir=tmp_path,
        environment={
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "WORKER_ALIVE_FILE": str(tmp_path / "alive"),
            "WORKER_HEARTBEAT_SECONDS": str(HEARTBEAT_SECONDS),
            "WORKER_STALLED_SECONDS": str(STALLED_SECONDS),
        },
    )


@pytest.fixture
def worker(jobs_emptied: None, tmp_path: Path) -> Iterator[Child]:
    """A worker of all queues that says that it is heard."""
    worker = started(tmp_path)
    wait_for((tmp_path / "alive").exists)
    yield worker
    let_in(True)
    worker.stop(within_seconds=STOPS_WITHIN_SECONDS)


@pytest.mark.integration
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_worker_may_start_before_its_database(
    jobs_emptied: None, tmp_path: Path, comes_back: bool
) -> None:
    let_in(False)
    try:
        worker = started(tmp_path)
        wait_for(lambda: "database_is_away" in worker.last_lines(count=9))
    finally:
        if comes_back:
            let_in(True)
    if comes_back:
        wait_for((tmp_path / "alive").exists)
    worker.stop(within_seconds=STOPS_WITHIN_SECONDS)
    let_in(True)

    assert worker.process.returncode == 0, worker.last_lines(count=30)


def has_done(job_id: int) -> bool:
    return not ProcrastinateJob.objects.filter(pk=job_id).exists()


@pytest.mark.integration
def test_a_worker_outlives_its_database(worker: Child, tmp_path: Path) -> None:
    """Ten cuts and one long absence; what is asked for afterwards is done."""
    for _ in range(10):
        cut_off_everybody_else()
        time.sleep(0.02)
    let_in(False)
    cut_off_everybody_else()
    # Beside one that the worker itself may have queued, at its start.
    sweep = app.configure_task(sweeps.sweep_steps.name, queueing_lock="another")
    job_id = sweep.defer(timestamp=0)
    time.sleep(STALLED_SECONDS + 0.5)
    alive = tmp_path / "alive"
    alive.unlink()
    time.sleep(3 * HEARTBEAT_SECONDS)
    assert not alive.exists()
    assert worker.is_running, worker.last_lines(count=40)

    let_in(True)
    wait_for(lambda: has_done(job_id))
    wait_for(alive.exists)

    assert worker.is_running
    worker.stop(within_seconds=STOPS_WITHIN_SECONDS)
    assert worker.process.returncode == 0


class LosesTheFirstAnswer(InMemoryConnector):
    """Gives job 7 to who asks first, in an answer that does not arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Any]] = []

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        self.asked.append(("fetch", None))
        if len(self.asked) == 1:
            lost = psycopg.OperationalError("the connection is lost")
            raise ConnectorException("lost") from lost
        return {"id": None, "names": []}

    async def execute_query_all_async(self, query: str, **arguments: Any) -> Any:
        if query == job_manager.HELD:
            self.asked.append(("held by", arguments["worker_id"]))
        else:
            assert query == job_manager.RETRY
            self.asked.append(("queue again", arguments["job_id"]))
        return [{"id": 7}]


def test_a_job_whose_answer_was_lost_is_queued_again() -> None:
    connector = LosesTheFirstAnswer()
    pool = Pool(queues=None, slots=1)
    manager = LastingJobManager(connector, pool=pool)

    assert asyncio.run(manager.fetch_job(None, worker_id=1)) is None

    assert connector.asked == [
        ("fetch", None),
        ("held by", 1),
        ("queue again", 7),
        ("fetch", None),
    ]


class RestartsMeanwhile(InMemoryConnector):
    """Is away at each question of a worker that starts, the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def execute_query_all_async(self, query: str, **arguments: Any) -> Any:
        if query == WHAT_TIME:
            return [{"now": time.time()}]
        self._ask("prune")
        return [{"worker_id": 3}]

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        if query == BEGAN_LATELY:
            self._ask("began")
            return {"is_new": False}
        self._ask("register")
        return {"worker_id": 4}

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.asked.count(what) == 1:
            lost = psycopg.OperationalError("server closed the connection")
            raise ConnectorException("lost") from lost


def test_a_worker_that_starts_outlives_its_database() -> None:
    """Which restarts between its first questions."""
    connector = RestartsMeanwhile()
    pool = Pool(queues=None, slots=1)
    manager = LastingJobManager(connector, pool=pool)

    async def start() -> tuple[list[int], int]:
        pruned = await manager.prune_stalled_workers(60)
        await sync_to_async(cut_by_the_server)()
        return pruned, await manager.register_worker()

    assert asyncio.run(start()) == ([3], 4)
    began, prune = ["began", "began"], ["prune", "began", "prune"]
    assert connector.asked == [*began, *prune, "register", "register"]
    assert WorkerQueues.objects.filter(worker_id=4).exists()


@pytest.mark.parametrize("break_it", [cut_by_the_server, left_in_an_answer])
@pytest.mark.parametrize(
    "tell",
    [
        partial(tell_queues, pool=Pool(queues=None, slots=1)),
        partial(tell_clock, ahead_seconds=90.0),
    ],
)
def test_what_a_worker_says_is_said_by_another_connection(
    tell: Callable[[int], None], break_it: Callable[[], None]
) -> None:
    """The database is back at once, and the connection of before is not."""
    break_it()
    with suppress(OperationalError):
        tell(1)

    tell(1)


class TakesUsForDead(InMemoryConnector):
    """Has no row of the worker that asks until it registers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        self.asked.append("fetch")
        if "register" not in self.asked:
            unknown = psycopg.errors.ForeignKeyViolation("no such worker")
            raise ConnectorException("refused") from unknown
        return {"id": None, "names": []}

    async def execute_query_all_async(self, query: str, **arguments: Any) -> Any:
        assert "INSERT INTO procrastinate_workers" in query
        self.asked.append("register")
        return [{"id": arguments["worker_id"]}]


def test_who_asks_for_a_job_and_was_taken_for_dead_registers_first() -> None:
    """Before its next heartbeat: this ended the worker."""
    connector = TakesUsForDead()
    pool = Pool(queues=None, slots=1)
    manager = LastingJobManager(connector, pool=pool)

    assert asyncio.run(manager.fetch_job(None, worker_id=1)) is None

    assert connector.asked == ["fetch", "register", "fetch"]


def test_who_was_taken_for_dead_registers_again(worker: Child) -> None:
    before = set(WorkerQueues.objects.values_list("worker_id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_workers")

    wait_for(lambda: len(before & set(heard_workers())) == len(before))


def heard_workers() -> list[int]:
    return list(ProcrastinateWorker.objects.values_list("pk", flat=True))


def test_an_end_that_nobody_ordered_is_a_failure(worker: Child) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER FUNCTION procrastinate_fetch_job_v2 RENAME TO fetch_job_is_gone"
        )
    try:
        wait_for(lambda: not worker.is_running)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER FUNCTION fetch_job_is_gone RENAME TO procrastinate_fetch_job_v2"
            )

    assert worker.process.returncode == 1
    assert "without being told to stop" in worker.last_lines()


def test_no_connection_waits_for_a_host_that_vanished() -> None:
    """TCP alone would take hours to notice; the worker's own connections, too."""
    for parameters in (connection.get_connection_params(), connector_params()):
        assert int(parameters["tcp_user_timeout"]) <= 20_000
        assert int(parameters["connect_timeout"]) <= 10
        assert int(parameters["keepalives_idle"]) <= 10


def test_a_worker_says_the_kernel_and_the_nfs_mounts_of_its_host() -> None:
    start_worker("build7", "storage")

    [worker] = alive_workers()
    assert worker.kernel == kernel_release()
    assert list(worker.nfs_uses) == nfs_uses()


def test_a_worker_of_before_said_no_kernel() -> None:
    start_worker("build7", "storage")
    WorkerQueues.objects.update(kernel="", nfs_uses=[])

    [worker] = alive_workers()
    assert (worker.kernel, worker.nfs_uses) == ("", ())
