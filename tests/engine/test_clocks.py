"""Whose clock decides: the database's, and no worker's."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from procrastinate.contrib.django.models import (
    ProcrastinateJob,
    ProcrastinatePeriodicDefer,
)
from procrastinate.jobs import Job
from procrastinate.testing import InMemoryConnector
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.demo.processes import Child, manage
from provisioner.engine import states
from provisioner.engine.job_manager import ClockIsOff, LastingJobManager
from provisioner.engine.models import Operation, Step, WorkerQueues
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import alive_workers, tell_queues
from provisioner.leases.actions.heartbeats import workspace_heartbeat
from provisioner.leases.sweeps.leases import (
    purge_expired,
    retire_expired,
    sweep_leases,
)
from provisioner.lib import clocks
from provisioner.workspaces.actions.retiring import workspace_restore
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state
from tests.chaos.clock import can_be_shifted, clock_ahead
from tests.support.jobs import queue_sweep
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

DAYS_40 = dt.timedelta(days=40)
HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
SECOND = dt.timedelta(seconds=1)
SAID_WITHIN_SECONDS = 60.0


@pytest.fixture
def trashed(alice: User, snapshot: Snapshot, jobs_emptied: None) -> Workspace:
    """A workspace that the trash keeps for three days more."""
    workspace = workspace_create(by=alice, template=snapshot.template)
    Step.objects.all().delete()
    workspace.operations.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    now = timezone.now()
    Workspace.objects.filter(pk=workspace.pk).update(
        state=Workspace.State.TRASHED,
        ready_at=now,
        trashed_at=now,
        purge_at=now + dt.timedelta(days=3),
    )
    workspace.refresh_from_db()
    return workspace


def wait_for(is_so: Callable[[], bool], *, worker: Child) -> None:
    ends = time.monotonic() + SAID_WITHIN_SECONDS
    while not is_so():
        assert worker.is_running, worker.last_lines()
        assert time.monotonic() < ends, worker.last_lines()
        time.sleep(0.1)


@pytest.mark.skipif(
    not can_be_shifted(), reason="No C compiler: no process gets a wrong clock."
)
def test_a_worker_whose_clock_is_ahead_does_nothing(
    trashed: Workspace, tmp_path: Path, client: Client
) -> None:
    """One of the sweeps that empty the trash waits for whoever takes it."""
    waiting = queue_sweep(sweep_leases)
    worker = Child(
        "worker",
        manage("worker"),
        log_dir=tmp_path,
        environment={
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "WORKER_HEARTBEAT_SECONDS": "0.2",
            "PURGE_CONFIRM_SECONDS": "0",
            **clock_ahead(seconds=int(DAYS_40.total_seconds()), directory=tmp_path),
        },
    )
    heard: list[dt.datetime] = []

    def was_heard_again() -> bool:
        """Return whether it lived through some more looks for a job, and knew."""
        heard.extend(found.heard_at for found in alive_workers() if found.clock_trouble)
        return len(set(heard)) > 10

    try:
        wait_for(was_heard_again, worker=worker)
        checks = client.get("/readyz").json()["checks"]
    finally:
        worker.stop()

    [said] = [check["reason"] for check in checks if check["name"] == "worker"]
    assert f"process {worker.process.pid}, takes no job" in said
    assert "3,45" in said  # seconds, in millions
    assert "ahead of the database's" in said
    assert list(ProcrastinateJob.objects.values_list("pk", "status")) == [
        (waiting, "todo")
    ]
    trashed.refresh_from_db()
    assert (trashed.state, trashed.purge_seen_at) == (Workspace.State.TRASHED, None)
    assert worker.last_lines(count=200).count("clock_is_off") == 5  # once for each pool


def test_a_worker_whose_clock_is_right_queues_periodic_jobs(
    jobs_emptied: None, tmp_path: Path
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_periodic_defers")
    worker = Child(
        "worker",
        manage("worker"),
        log_dir=tmp_path,
        environment={"DATABASE_NAME": connection.settings_dict["NAME"]},
    )
    try:
        wait_for(ProcrastinatePeriodicDefer.objects.exists, worker=worker)
    finally:
        worker.stop()


class ClockOfDatabase(InMemoryConnector):
    """Answers what time it is, and has no job."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ahead_seconds = 0.0
        self.asked_for_jobs = 0
        self.retry_at: dt.datetime | None = None

    async def execute_query_all_async(self, query: str, **arguments: Any) -> Any:
        self.retry_at = arguments.get("retry_at", self.retry_at)
        now = time.time() + self.is_ahead_seconds
        return [{"id": 1, "is_known": True, "is_later": False, "now": now}]

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        self.asked_for_jobs += 1
        return {"id": None, "names": []}


@pytest.mark.parametrize("off", [DAYS_40, -DAYS_40, 2 * MINUTE])
def test_a_clock_that_is_off_stops_a_pool_until_it_is_right(off: dt.timedelta) -> None:
    connector = ClockOfDatabase()
    pool = Pool(queues=None, slots=1)
    manager = LastingJobManager(connector, pool=pool)
    tell_queues(1, pool=pool)
    job = Job(
        id=None,
        queue="sweeps",
        lock=None,
        queueing_lock=None,
        task_name="sweep_jobs",
    )

    async def beat() -> tuple[int, float]:
        await manager.update_heartbeat(1)
        await manager.fetch_job(None, worker_id=1)
        said = await WorkerQueues.objects.aget(worker_id=1)
        return connector.asked_for_jobs, said.clock_ahead_seconds

    async def live() -> None:
        assert await beat() == (1, 0.0)
        connector.is_ahead_seconds = off.total_seconds()
        asked, ahead = await beat()
        assert asked == 1
        assert ahead == pytest.approx(-off.total_seconds(), abs=10)
        with pytest.raises(ClockIsOff):
            await manager.defer_periodic_job(job, "", 0)
        connector.is_ahead_seconds = 0.0
        assert await beat() == (2, 0.0)

    asyncio.run(live())


@pytest.mark.parametrize(
    ("database", "ahead"), [(90.0, 10.0), (105.0, 0.0), (130.0, -20.0)]
)
def test_an_answer_that_took_long_says_nothing_against_a_clock(
    database: float, ahead: float
) -> None:
    found = clocks.seconds_ahead(asked_at=100.0, database=database, answered_at=110.0)

    assert found == ahead


def test_sweeps_ask_the_database_what_time_it_is(
    trashed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = timezone.now() + DAYS_40
    monkeypatch.setattr(timezone, "now", lambda: ahead)

    sweep_leases(timestamp=0)

    trashed.refresh_from_db()
    assert trashed.state == Workspace.State.TRASHED


def test_the_trash_is_emptied_at_the_second_check(
    trashed: Workspace, settings: Settings
) -> None:
    settings.PURGE_CONFIRM_SECONDS = 120.0
    assert trashed.purge_at is not None
    due = trashed.purge_at

    assert purge_expired(now=due) == 0
    assert purge_expired(now=due + MINUTE) == 0
    assert purge_expired(now=due + 2 * MINUTE) == 1

    trashed.refresh_from_db()
    assert trashed.operations.get().kind == WorkspaceOperation.PURGE


def test_what_is_no_longer_due_is_checked_anew(
    trashed: Workspace, settings: Settings
) -> None:
    """Somebody's time was wrong at the first check."""
    settings.PURGE_CONFIRM_SECONDS = 120.0
    assert trashed.purge_at is not None
    due = trashed.purge_at

    assert purge_expired(now=due + DAYS_40) == 0
    assert purge_expired(now=due - MINUTE) == 0
    assert purge_expired(now=due) == 0
    assert purge_expired(now=due + 2 * MINUTE) == 1


def test_a_web_server_whose_clock_is_behind_shortens_no_lease(
    snapshot: Snapshot, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New leases, and what people do to old ones, begin by the database's clock."""
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() - DAYS_40)

    workspace = workspace_create(
        by=alice, template=snapshot.template, lease_seconds=3600
    )

    assert workspace.expires_at is not None
    assert abs(workspace.expires_at - right() - dt.timedelta(hours=1)) < MINUTE


def test_a_heartbeat_counts_whatever_the_clock_of_the_web_server_says(
    trashed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = timezone.now()
    Workspace.objects.filter(pk=trashed.pk).update(
        state=Workspace.State.READY,
        trashed_at=None,
        purge_at=None,
        heartbeat_seconds=60,
        heartbeat_at=right,
    )
    monkeypatch.setattr(timezone, "now", lambda: right - DAYS_40)

    workspace = workspace_heartbeat(by=trashed.owner, workspace=trashed)

    assert workspace.heartbeat_at is not None
    assert workspace.heartbeat_at >= right


def test_what_was_brought_back_is_not_retired_whatever_the_clock_said(
    trashed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for by a web server whose clock was behind."""
    right = timezone.now()
    Workspace.objects.filter(pk=trashed.pk).update(expires_at=right - HOUR)
    monkeypatch.setattr(timezone, "now", lambda: right - DAYS_40)
    restoration = workspace_restore(by=trashed.owner, workspace=trashed)
    states.end_operation(restoration, Operation.State.SUCCEEDED)
    states.skip_waiting_steps(restoration)
    set_workspace_state(trashed, Workspace.State.READY)
    monkeypatch.undo()

    assert retire_expired(now=clocks.database_now()) == 0

    trashed.refresh_from_db()
    assert trashed.expires_at is not None
    assert trashed.expires_at > right


def test_a_retry_comes_by_the_databases_clock() -> None:
    """Ours may be off by less than what stops a worker."""
    connector = ClockOfDatabase()
    connector.is_ahead_seconds = -40.0
    manager = LastingJobManager(connector, pool=Pool(queues=None, slots=1))
    job = Job(
        id=1, worker_id=1, queue="q", lock=None, queueing_lock=None, task_name="x"
    )
    ours = timezone.now()

    async def live() -> None:
        await manager.update_heartbeat(1)
        await manager.retry_job(job, retry_at=ours)

    asyncio.run(live())

    assert connector.retry_at is not None
    late = (connector.retry_at - (ours - 40 * SECOND)).total_seconds()
    assert abs(late) < 10


def test_what_was_asked_for_last_is_last_whatever_clocks_said(
    trashed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore by a web server whose clock was behind is newer than the purge."""
    right = timezone.now()
    for kind, at in (
        (WorkspaceOperation.PURGE, right - 3 * HOUR),
        (WorkspaceOperation.RESTORE, right - 7 * HOUR),
    ):
        monkeypatch.setattr(timezone, "now", lambda at=at: at)
        Operation.objects.create(
            kind=kind,
            subject=trashed.subject,
            requested_by=trashed.owner,
            state=Operation.State.FAILED,
            ended_at=at,
            status_code="x",
            status_message="x",
        )
    monkeypatch.undo()
    Workspace.objects.filter(pk=trashed.pk).update(
        state=Workspace.State.FAILED,
        failed_at=right,
        purge_at=right - HOUR,
        status_code="x",
        status_message="x",
    )

    assert purge_expired(now=clocks.database_now()) == 0
