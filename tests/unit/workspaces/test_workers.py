"""What a worker's process says of itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from provisioner.accounts.models import User
from provisioner.demo.processes import Child, manage
from provisioner.workspaces import tasks
from provisioner.workspaces.actions import workspace_create
from provisioner.workspaces.models import Event, Snapshot, WorkerQueues
from provisioner.workspaces.workers import served_queues

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
