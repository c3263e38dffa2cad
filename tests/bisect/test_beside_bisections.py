"""Whoever asks for a workspace while commands of bisections take all that they may."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from provisioner.accounts.models import User
from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Step
from tests.support.api_clients import api_of
from tests.support.bisections_in_lab import alice, built, changes_of
from tests.support.factories import UserFactory
from tests.support.forkserver import warm
from tests.support.lab import Lab
from tests.support.newer_snapshots import Others

__all__ = ["alice", "built"]

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

SETTLED_WITHIN_SECONDS = 120.0
# Two at a time each: together more than the worker has slots, of whatever kind.
SEARCHING = ("bob", "carol")
SEARCHES = 2 * len(SEARCHING)
SLOTS = ("--concurrency", "2", "--commands", "1", "--bisections", "1")

StartWorker = Callable[[], Child]


@pytest.fixture
def start_worker(
    transactional_db: None, jobs_emptied: None, lab: Lab, tmp_path: Path
) -> Iterator[StartWorker]:
    environment = {
        "DATABASE_NAME": connection.settings_dict["NAME"],
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
        "LOG_DIR": str(lab.root / "logs"),
    }
    started: list[Child] = []
    with warm(environment) as start:

        def start_worker() -> Child:
            command = manage("worker", *SLOTS)
            worker = Child("worker", command, log_dir=tmp_path, start=start)
            started.append(worker)
            return worker

        yield start_worker
        for worker in started:
            worker.stop()


def until(is_so: Callable[[], bool], *, worker: Child) -> None:
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not is_so():
        assert worker.is_running, worker.last_lines()
        assert time.monotonic() < ends, worker.last_lines(count=40)
        time.sleep(0.1)


def test_a_workspace_is_made_while_commands_of_bisections_take_every_slot_of_theirs(
    built: Template, others: Others, alice: User, start_worker: StartWorker
) -> None:
    changes = changes_of(built, others)
    searches = []
    for uid, name in enumerate(SEARCHING, 21_000):
        api = api_of(UserFactory.create(username=name, uid=uid, gid=20_000))
        for number in range(2):
            body = {
                "template": built.name,
                "good": changes[0],
                "bad": changes[-1],
                "command": f"sleep 600; exit {number}",
            }
            answer = api.post("/api/v1/bisections", body)
            assert answer.status_code == 202, answer.json()
            searches.append((api, answer.json()["id"]))
    commands = Step.objects.filter(name="run")
    worker = start_worker()
    until(
        lambda: (
            commands.filter(state=Step.State.RUNNING).count() == 1
            and commands.filter(state=Step.State.QUEUED).count() == SEARCHES - 1
        ),
        worker=worker,
    )

    as_alice = api_of(alice)
    asked = as_alice.post("/api/v1/workspaces", {"template": built.name})
    assert asked.status_code == 202, asked.json()
    address = f"/api/v1/workspaces/{asked.json()['id']}"
    until(lambda: as_alice.get(address).json()["state"] == "ready", worker=worker)

    assert commands.filter(state=Step.State.RUNNING).count() == 1
    for api, search in searches:
        assert api.post(f"/api/v1/bisections/{search}/stop").status_code == 200
    until(
        lambda: (
            not Bisection.objects.filter(state=Bisection.State.RUNNING).exists()
            and not commands.filter(state__in=["running", "queued"]).exists()
        ),
        worker=worker,
    )
