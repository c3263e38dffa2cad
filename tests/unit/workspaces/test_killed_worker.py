"""kill -9 of a worker during any step: the next one brings the workspace to READY."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from provisioner.accounts.models import User
from provisioner.demo.processes import Child, manage
from provisioner.workspaces import workflow
from provisioner.workspaces.actions import template_build, workspace_create
from provisioner.workspaces.models import Operation, Step, Template, Workspace
from tests.factories import UserFactory
from tests.lab import Lab

pytestmark = pytest.mark.django_db(transaction=True)

SETTLED_WITHIN_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.01
# Every remote call takes this long, so that a step lasts long enough to be killed in.
LATENCY_SECONDS = 0.15


@pytest.fixture
def start_worker(
    lab: Lab, jobs_emptied: None, tmp_path: Path
) -> Iterator[Callable[[], Child]]:
    started: list[Child] = []

    def start() -> Child:
        worker = Child(
            f"worker{len(started)}",
            manage("worker"),
            log_dir=tmp_path,
            environment={
                "DATABASE_NAME": connection.settings_dict["NAME"],
                "ONTAP_PASSWORD": lab.ontap["password"],
                "P4PASSWD": lab.perforce["password"],
                "LOG_DIR": str(lab.root / "logs"),
                "WORKER_HEARTBEAT_SECONDS": "0.3",
                "WORKER_STALLED_SECONDS": "1.5",
            },
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.stop()


def wait_for(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < ends, list(
            Step.objects.values_list("name", "state", "attempt", "error_message")
        )
        time.sleep(LOOK_EVERY_SECONDS)


def kill_in_step(
    operation: Operation, *, name: str, start_worker: Callable[[], Child]
) -> None:
    """Start a worker, kill it in the step, start another, wait for the end."""
    step = operation.steps.get(name=name)
    victim = start_worker()

    def has_begun() -> bool:
        step.refresh_from_db()
        return step.started_at is not None

    wait_for(has_begun)
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    start_worker()

    def has_ended() -> bool:
        operation.refresh_from_db()
        return operation.state != Operation.State.RUNNING

    wait_for(has_ended)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message


@pytest.mark.parametrize("name", [spec.name for spec in workflow.PROVISION])
def test_a_worker_killed_while_provisioning_is_a_non_event(
    name: str,
    built_template: Template,
    lab: Lab,
    start_worker: Callable[[], Child],
) -> None:
    alice: User = UserFactory(username="alice", uid=20001, gid=20000)
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    workspace = workspace_create(
        by=alice, template=built_template, wants_reconcile=True
    )

    kill_in_step(workspace.operations.get(), name=name, start_worker=start_worker)

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY


@pytest.mark.parametrize("name", ["sync", "build", "snapshot"])
def test_a_worker_killed_while_building_is_a_non_event(
    name: str, lab_template: Template, lab: Lab, start_worker: Callable[[], Child]
) -> None:
    Template.objects.filter(pk=lab_template.pk).update(
        build_command=f"sleep 1 && {lab_template.build_command}"
    )
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    operation = template_build(by=lab_template.created_by, template=lab_template)

    kill_in_step(operation, name=name, start_worker=start_worker)

    assert lab_template.snapshots.count() == 1
