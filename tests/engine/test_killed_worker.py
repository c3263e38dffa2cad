"""kill -9 of a worker during any step: the next one brings the workspace to READY."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.workflows import PROVISION
from tests.support.factories import UserFactory
from tests.support.forkserver import Warm, warm
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

SETTLED_WITHIN_SECONDS = 60.0
POLL_EVERY_SECONDS = 0.03
# Every remote call takes this long, so that a step lasts long enough to be killed in.
LATENCY_SECONDS = 0.15
# And so does telling the database of the end of the steps that ask nobody far away.
END_OF_LOCAL_STEPS_TAKES_LONG = f"""
    CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep({LATENCY_SECONDS}); RETURN NEW; END $$;
    CREATE TRIGGER take_long BEFORE UPDATE ON {Step._meta.db_table} FOR EACH ROW
    WHEN (OLD.name IN ('owner', 'p4config') AND NEW.state = '{Step.State.DONE}')
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
) -> Iterator[Callable[[], Child]]:
    started: list[Child] = []

    def start() -> Child:
        name = f"worker{len(started)}"
        worker = Child(name, manage("worker"), log_dir=tmp_path, start=warm_worker)
        started.append(worker)
        return worker

    yield start
    # What it sweeps at that moment would go on, at the pace that was set for steps.
    lab.break_ontap()
    lab.break_perforce()
    for worker in started:
        worker.stop()


@pytest.fixture
def slow_local_steps(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(END_OF_LOCAL_STEPS_TAKES_LONG)
    yield
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


@pytest.mark.usefixtures("slow_local_steps")
def test_workers_killed_while_provisioning_are_a_non_event(
    published_template: Template, lab: Lab, start_worker: Callable[[], Child]
) -> None:
    alice: User = UserFactory.create(username="alice", uid=20001, gid=20000)
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    names = {spec.name for spec in PROVISION}
    for _try in range(3):  # one may end between two looks
        workspace = workspace_create(
            by=alice, template=published_template, wants_reconcile=True
        )
        kill_in_steps(
            workspace.operations.get(), names=names, start_worker=start_worker
        )
        workspace.refresh_from_db()
        assert workspace.state == Workspace.State.READY
        if not names:
            return
    raise AssertionError(f"never seen to run: {names}")


def test_workers_killed_while_building_are_a_non_event(
    lab_template: Template, lab: Lab, start_worker: Callable[[], Child]
) -> None:
    Template.objects.filter(pk=lab_template.pk).update(
        build_command=f"sleep 1 && {lab_template.build_command}"
    )
    lab.break_ontap({"latency_seconds": LATENCY_SECONDS})
    lab.break_perforce({"latency_seconds": LATENCY_SECONDS})
    operation = template_build(by=lab_template.owner, template=lab_template)
    names = {"sync", "build", "snapshot"}

    kill_in_steps(operation, names=names, start_worker=start_worker)

    assert not names, "never seen to run"
    assert lab_template.snapshots.count() == 1


def test_a_worker_closes_logs_of_earlier_releases(
    start_worker: Callable[[], Child], lab: Lab
) -> None:
    log = lab.root / "logs" / "operation-0-build.log"
    log.parent.mkdir(exist_ok=True)
    log.parent.chmod(0o755)
    log.write_text("of an earlier release\n")
    log.chmod(0o644)

    worker = start_worker()

    wait_for(lambda: stat.S_IMODE(log.stat().st_mode) == 0o640, worker=worker)
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o750
