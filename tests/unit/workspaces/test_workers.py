"""What a worker's process says of itself."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from procrastinate.testing import InMemoryConnector

from provisioner.accounts.models import User
from provisioner.demo.processes import Child, manage
from provisioner.workspaces import tasks
from provisioner.workspaces.actions import workspace_create
from provisioner.workspaces.models import Event, Snapshot, WorkerQueues
from provisioner.workspaces.workers import TellingJobManager, served_queues

pytestmark = pytest.mark.django_db(transaction=True)

SAID_WITHIN_SECONDS = 60.0


def wait_for(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + SAID_WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_worker_says_what_it_serves_and_the_trail_which_worker_it_was(
    alice: User, snapshot: Snapshot, jobs_emptied: None, tmp_path: Path
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")  # lost: nothing runs them
    tasks.sweep_steps.defer(timestamp=0)
    worker = Child(
        "worker",
        manage("worker", "--queues", "host.nowhere"),
        log_dir=tmp_path,
        environment={"DATABASE_NAME": connection.settings_dict["NAME"]},
    )
    try:
        wait_for(WorkerQueues.objects.exists)
        assert served_queues() == {"host.nowhere", "sweeps"}
        healed = Event.objects.filter(kind="operation_healed", workspace=workspace)
        wait_for(healed.exists)
    finally:
        worker.stop()

    event = healed.latest("pk")
    assert event.via.startswith(f"worker {socket.gethostname()}, job ")
    assert event.via.endswith("(sweep_steps)")


class CalledWhileItLooks(InMemoryConnector):
    """Has no job; a call for one comes while the first question is under way."""

    def __init__(self, manager_of: Callable[[], TellingJobManager]) -> None:
        super().__init__()
        self.manager_of = manager_of
        self.questions = 0

    async def execute_query_one_async(self, query: str, **arguments: Any) -> Any:
        self.questions += 1
        if self.questions == 1:
            await self.manager_of().listen_for_jobs(on_notification=self.forget)
        return {"id": None}

    async def listen_notify(self, on_notification: Any, channels: object) -> None:
        await on_notification(channel="jobs", payload='{"type": "job_inserted"}')

    async def forget(self, **said: object) -> None:
        """Do as Procrastinate's worker does while it looks for a job."""


def test_a_call_that_comes_while_a_worker_looks_for_a_job_is_not_missed() -> None:
    connector = CalledWhileItLooks(lambda: manager)
    manager = TellingJobManager(connector, queues=None)

    assert asyncio.run(manager.fetch_job(None, worker_id=1)) is None

    assert connector.questions == 2
