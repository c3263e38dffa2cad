"""A worker that froze, and wakes, changes nothing that another has gone on with."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from procrastinate.contrib.django.utils import connector_params
from procrastinate.jobs import Job
from psycopg import sql

from provisioner.catalog.actions.lifecycle import template_delete
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template, TemplateOperation
from provisioner.demo.processes import Child, manage, started_anew
from provisioner.engine import states as engine_states
from provisioner.engine import tasks, workflow
from provisioner.engine.fencing import (
    ASKED_AT_MOST,
    LEAVE_SECONDS,
    AttemptLeave,
    NotHeard,
)
from provisioner.engine.management.commands.worker import in_its_name
from provisioner.engine.models import Operation, Step
from provisioner.engine.sweeps import jobs as sweeps
from provisioner.gateways import fence, registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.files import close_directory, write_as_owner
from provisioner.gateways.hosts.log_files import begin_log
from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.rescue_archive import remove_leftovers
from provisioner.gateways.hosts.tree_remarks import remarks_on_tree
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged, StepCutShort, StepRefused
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.chaos.wire import SOCKET, Wire
from tests.support.crossing import wait_until_somebody_waits_for_a_lock
from tests.support.database_outage import (
    cut_by_the_server,
    cut_off_everybody_else,
    leave_database,
    left_in_an_answer,
    let_in,
)
from tests.support.factories import UserFactory
from tests.support.forkserver import Warm, warm
from tests.support.jobs import queue_sweep
from tests.support.lab import Lab, define_template
from tests.support.projects import Project
from tests.support.requests import workspace_create
from tests.support.work import AtWork

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]

STALLED_SECONDS = 1.5
WITHIN_SECONDS = 180.0


def taken_over(step: Step) -> None:
    """Start another attempt at the step, as another worker would."""
    Step.objects.filter(pk=step.pk).update(attempt=F("attempt") + 1)


# --- who may act


@pytest.fixture
def step(ready: Workspace, jobs_emptied: None) -> Step:
    """A step at work, in the job of a worker."""
    operation = workspace_check(by=ready.owner, workspace=ready)
    step = operation.steps.get()
    engine_states.start_step(step)
    return step


@pytest.fixture
def job(step: Step) -> Job:
    assert step.job_id is not None
    return job_at_work(step.job_id)


def job_at_work(job_id: int) -> Job:
    """Return a job as its worker has it, which is heard throughout the test."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        [worker_id] = cursor.fetchone()
    heard(worker_id, seconds_ago=-3600)
    give(job_id, to=worker_id)
    row = ProcrastinateJob.objects.get(pk=job_id)
    return Job(
        id=row.pk,
        worker_id=worker_id,
        task_name=row.task_name,
        queue=row.queue_name,
        lock=None,
        queueing_lock=None,
    )


def heard(worker_id: int | None, *, seconds_ago: float) -> None:
    at = clocks.database_now() - dt.timedelta(seconds=seconds_ago)
    ProcrastinateWorker.objects.filter(pk=worker_id).update(last_heartbeat=at)


def give(job_id: int | None, *, to: int | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s "
            "WHERE id = %s",
            [to, job_id],
        )


def test_leave_is_given_to_the_attempt_under_way_alone(step: Step, job: Job) -> None:
    AttemptLeave(step, job=job)()

    taken_over(step)

    with pytest.raises(StepCutShort):
        AttemptLeave(step, job=job)()


def test_leave_ends_with_the_operation(step: Step, job: Job) -> None:
    engine_states.cancel_operation(step.operation, message="Enough.")

    with pytest.raises(StepCutShort):
        AttemptLeave(step, job=job)()


def test_leave_ends_when_the_job_is_taken_from_its_worker(step: Step, job: Job) -> None:
    """Before another begins: what leave was given until then is over by that time."""
    give(job.id, to=None)

    with pytest.raises(StepCutShort):
        AttemptLeave(step, job=job)()


def test_leave_is_asked_for_again_after_a_while(
    step: Step, job: Job, settings: Any
) -> None:
    settings.WORKER_STALLED_SECONDS = 0.4
    leave = AttemptLeave(step, job=job)
    leave()
    taken_over(step)
    leave()  # it was given a moment ago

    time.sleep(0.15)
    with pytest.raises(StepCutShort):
        leave()


def hear_elsewhere(worker_id: int | None) -> None:
    try:
        heard(worker_id, seconds_ago=0)
    finally:
        connection.close()


def test_no_leave_is_given_to_a_worker_whose_heartbeats_do_not_arrive(
    step: Step, job: Job, settings: Any
) -> None:
    """A former primary shows no heartbeat that has not reached its standby."""
    settings.WORKER_STALLED_SECONDS = 1.0
    heard(job.worker_id, seconds_ago=1.1)

    with pytest.raises(NotHeard):
        AttemptLeave(step, job=job)()


def test_leave_is_given_once_a_heartbeat_arrives_again(step: Step, job: Job) -> None:
    """As after a restart of the database, before workers have reported."""
    heard(job.worker_id, seconds_ago=3600)
    later = threading.Timer(0.5, hear_elsewhere, [job.worker_id])
    later.start()

    AttemptLeave(step, job=job)()

    later.join()


class LateAnswer(AttemptLeave):
    """The database's answers come late, and what was true at first is not any more."""

    seconds = 0.15
    asked = 0

    def _is_heard(self) -> bool | None:
        is_heard = super()._is_heard()
        self.asked += 1
        time.sleep(self.seconds)
        return is_heard


def test_nobody_waits_for_a_far_side_while_rows_are_locked(
    step: Step, job: Job, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "secret"
    site = step.operation.site
    for ask in (
        AttemptLeave(step, job=job),
        partial(registry.ontap, site),
        partial(registry.perforce, site.perforce_server),
    ):
        ask()
        with transaction.atomic(), pytest.raises(RuntimeError):
            ask()


def test_an_answer_that_comes_late_is_no_leave(
    step: Step, job: Job, settings: Any
) -> None:
    settings.WORKER_STALLED_SECONDS = 0.4

    class TakenOverMeanwhile(LateAnswer):
        def _is_heard(self) -> bool | None:
            is_heard = super()._is_heard()
            taken_over(step)
            return is_heard

    with pytest.raises(StepCutShort):
        TakenOverMeanwhile(step, job=job)()


def test_a_database_that_always_answers_late_gives_no_leave(
    step: Step, job: Job, settings: Any
) -> None:
    """The job is tried again later, as where the database is away."""
    settings.WORKER_STALLED_SECONDS = 0.4
    leave = LateAnswer(step, job=job)

    with pytest.raises(OperationalError):
        leave()

    assert leave.asked == ASKED_AT_MOST


def test_a_job_is_given_to_another_when_leave_for_it_is_over(
    step: Step, job: Job, settings: Any
) -> None:
    give(job.id, to=None)

    async_to_sync(sweeps._give_to_another)(job.evolve(worker_id=None))

    row = ProcrastinateJob.objects.get(pk=job.id)
    assert row.status == "todo"
    assert row.scheduled_at is not None
    left = row.scheduled_at - clocks.database_now()
    assert 0.5 < left.total_seconds() <= LEAVE_SECONDS


def test_a_job_that_is_with_another_by_now_is_not_settled_for_it(
    step: Step, job: Job
) -> None:
    before = job.evolve(worker_id=None)

    async_to_sync(sweeps._give_to_another)(before)

    assert ProcrastinateJob.objects.get(pk=job.id).status == "doing"


def test_rows_are_written_by_the_attempt_under_way_alone(step: Step) -> None:
    with engine_states.holding(step):
        Workspace.objects.update(volume_uuid="mine")
    taken_over(step)

    with pytest.raises(StepCutShort), engine_states.holding(step):
        Workspace.objects.update(volume_uuid="late")

    assert Workspace.objects.get().volume_uuid == "mine"


def test_nobody_follows_while_an_attempt_writes(step: Step) -> None:
    """Another attempt begins after what is being written, never in between."""
    order: list[str] = []

    def follow() -> None:
        try:
            engine_states.start_step(Step.objects.get(pk=step.pk))
            order.append("followed")
        finally:
            connection.close()

    other = threading.Thread(target=follow)
    with engine_states.holding(step):
        other.start()
        time.sleep(0.3)
        order.append("written")
    other.join()

    assert order == ["written", "followed"]


def test_a_job_that_another_worker_was_given_acts_no_more(
    jobs_emptied: None, settings: Any
) -> None:
    """Sweeps and repairs, which are no steps: the worker gives each its leave."""
    settings.WORKER_STALLED_SECONDS = 0.4
    job = job_at_work(queue_sweep(sweeps.sweep_steps))

    context = JobContext(
        app=app, job=job, start_timestamp=0.0, abort_reason=lambda: None
    )

    async def acts() -> None:
        await sync_to_async(fence.require_leave)()
        await sync_to_async(give)(job.id, to=None)
        await asyncio.sleep(0.2)
        await sync_to_async(fence.require_leave)()

    with pytest.raises(StepCutShort):
        async_to_sync(in_its_name)(acts, context, None)


@pytest.mark.parametrize("lost", ["", "worker", "job", "operation"])
def test_an_attempt_learns_at_its_start_whether_it_may_act(
    lost: str, step: Step, job: Job
) -> None:
    if lost == "worker":
        heard(job.worker_id, seconds_ago=3600)
    elif lost == "job":
        give(job.id, to=None)
    elif lost == "operation":
        engine_states.cancel_operation(step.operation, message="Enough.")

    engine_states.start_step(step, leave_of=job)

    assert (step.leave_asked_at is None) == bool(lost)
    if not lost:
        with CaptureQueriesContext(connection) as asked:
            AttemptLeave(step, job=job)()
        assert not asked.captured_queries


def test_an_attempt_that_was_followed_writes_nothing_of_its_step(step: Step) -> None:
    taken_over(step)

    with pytest.raises(StateChanged):
        engine_states.finish_step(step, result=None)
    with pytest.raises(StateChanged):
        engine_states.fail_step(step, code="late", message="Late.")
    with pytest.raises(StateChanged):
        engine_states.skip_step(step)
    with pytest.raises(StepCutShort):
        engine_states.record_progress(step, {"late": True})
    with pytest.raises(StepCutShort):
        engine_states.remember_ontap_job(step, "late")

    step.refresh_from_db()
    assert (step.state, step.progress) == (Step.State.RUNNING, {})
    assert step.ontap_job_uuid == ""


# --- every door


@contextmanager
def without_leave() -> Iterator[list[str]]:
    """Refuse every act; say how many were tried."""
    tried: list[str] = []

    def refuse() -> None:
        tried.append("act")
        raise StepCutShort

    with fence.asking(refuse), pytest.raises(StepCutShort):
        yield tried


def test_nothing_is_sent_to_ontap_without_leave(lab_workspace: Workspace) -> None:
    ontap = registry.ontap(lab_workspace.site)

    with without_leave():
        ontap.delete_volume(lab_workspace.volume_uuid, force=True)

    assert ontap.find_volume(lab_workspace.volume_name) is not None


def test_nothing_is_sent_to_perforce_without_leave(lab_workspace: Workspace) -> None:
    perforce = registry.perforce(lab_workspace.site.perforce_server)

    with without_leave():
        perforce.clients.delete(lab_workspace.client_name)

    assert perforce.clients.find(lab_workspace.client_name) is not None


def test_no_file_changes_without_leave(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / ".hers-1-abcdef0000.partial").mkdir()
    before = sorted(os.listdir(tmp_path))
    uid = os.geteuid() or 20001

    with without_leave():
        change_ownership(tmp_path, uid=uid, gid=uid)
    with without_leave():
        remove_contents(tmp_path)
    with without_leave():
        write_as_owner(tmp_path, "new", "text", uid=uid, gid=uid)
    with without_leave():
        begin_log(tmp_path / "file")
    with without_leave():
        close_directory(tmp_path)
    with without_leave():
        remove_leftovers(
            tmp_path.parent,
            owner=tmp_path.name,
            workspace="hers",
            tag="abcdef",
            uid=uid,
            gid=uid,
        )

    assert sorted(os.listdir(tmp_path)) == before


def test_no_privilege_is_dropped_without_leave(tmp_path: Path) -> None:
    (tmp_path / "tool").touch()
    (tmp_path / "tool").chmod(0o4755)

    with without_leave():
        remarks_on_tree(tmp_path)

    assert (tmp_path / "tool").stat().st_mode & 0o7777 == 0o4755


# --- every step of every operation


class TakenOver(AttemptLeave):
    """At the first act of each step another worker's attempt has begun."""

    seen: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, step: Step, *, job: Job) -> None:
        super().__init__(step, job=job)
        self._which = (step.operation.kind, step.name)

    def __call__(self) -> None:
        if self._which not in self.seen:
            self.seen.add(self._which)
            Step.objects.filter(pk=self._step_id).update(attempt=F("attempt") + 1)
        super().__call__()


@pytest.fixture
def every_step_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "AttemptLeave", TakenOver)
    TakenOver.seen.clear()


def test_whatever_is_taken_over_goes_on_once(
    lab_template: Template,
    every_step_is_taken_over: None,
    run_jobs: Callable[[], None],
) -> None:
    """From the build to the purge: each step is begun twice, and one acts."""

    def settled(kind: str) -> None:
        operation = Operation.objects.filter(kind=kind).latest("pk")
        ends = time.monotonic() + WITHIN_SECONDS
        while operation.state == Operation.State.RUNNING:
            assert time.monotonic() < ends, what_is_left(operation)
            run_jobs()
            sweeps.sweep_steps(timestamp=0)  # what nobody's job is about any more
            operation.refresh_from_db()
        assert operation.state == Operation.State.SUCCEEDED, operation.status_message

    template_build(by=lab_template.owner, template=lab_template)
    settled(TemplateOperation.BUILD)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=lab_template)
    settled(WorkspaceOperation.PROVISION)
    path = workspace.path / "src" / "mine.txt"
    path.write_text("mine")
    os.chown(path, 20001, 20000) if os.geteuid() == 0 else None
    workspace_retire(by=alice, workspace=workspace, unsubmitted="rescue")
    settled(WorkspaceOperation.RETIRE)
    workspace_restore(by=alice, workspace=workspace)
    settled(WorkspaceOperation.RESTORE)
    workspace.refresh_from_db()
    assert path.read_text() == "mine"
    workspace_retire(by=alice, workspace=workspace, unsubmitted="rescue")
    settled(WorkspaceOperation.RETIRE)
    workspace_purge(by=alice, workspace=workspace)
    settled(WorkspaceOperation.PURGE)

    acted = {name for kind, name in TakenOver.seen if kind == WorkspaceOperation.RETIRE}
    assert {"freeze", "work", "client", "unmount"} <= acted


def what_is_left(operation: Operation) -> str:
    """Say who waits for what."""
    steps = operation.steps.values_list("name", "state", "attempt", "error_message")
    jobs = ProcrastinateJob.objects.exclude(status="succeeded").values()
    return "\n".join([*map(str, steps), *map(str, jobs)])


# --- a real worker that is stopped


@pytest.fixture(scope="module")
def of_workers(django_db_setup: None, lab: Lab) -> dict[str, str]:
    """The environment of workers."""
    return {
        "DATABASE_NAME": connection.settings_dict["NAME"],
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
        "LOG_DIR": str(lab.root / "logs"),
        "WORKER_HEARTBEAT_SECONDS": "0.3",
        "WORKER_STALLED_SECONDS": str(STALLED_SECONDS),
    }


@pytest.fixture(scope="module")
def warm_worker(of_workers: dict[str, str]) -> Iterator[Warm]:
    with warm(of_workers) as warm_worker:
        yield warm_worker


@pytest.fixture
def start_worker(
    warm_worker: Warm,
    of_workers: dict[str, str],
    jobs_emptied: None,
    tmp_path: Path,
) -> Iterator[Callable[..., Child]]:
    started: list[Child] = []

    def start(*, by: str = "") -> Child:
        """Start one; where its way to the database is given, with settings anew."""
        worker = Child(
            f"worker{len(started)}",
            manage("worker"),
            log_dir=tmp_path,
            start=started_anew if by else warm_worker,
            environment={**of_workers, "DATABASE_URL": by} if by else None,
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        if worker.is_running:
            os.kill(worker.process.pid, signal.SIGCONT)
        worker.stop()


def wait_for(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_worker_stopped_inside_a_retirement_deletes_no_client_afterwards(
    lab_workspace: Workspace,
    at_work: AtWork,
    lab: Lab,
    start_worker: Callable[..., Child],
) -> None:
    """It stops before the client goes, and wakes when its owner is at work again."""
    workspace, owner = lab_workspace, lab_workspace.owner
    lab.break_perforce({"command": "client", "latency_seconds": 0.6})
    operation = workspace_retire(by=owner, workspace=workspace)
    first = start_worker()
    running = operation.steps.filter(name="client", state=Step.State.RUNNING)
    wait_for(running.exists)
    os.kill(first.process.pid, signal.SIGSTOP)
    time.sleep(STALLED_SECONDS)
    start_worker()
    wait_for(lambda: settled(workspace) == Workspace.State.TRASHED)
    lab.break_perforce()
    workspace_restore(by=owner, workspace=workspace)
    wait_for(lambda: settled(workspace) == Workspace.State.READY)
    at_work.open_for_edit()

    os.kill(first.process.pid, signal.SIGCONT)
    wait_for(lambda: not first.is_running)

    assert first.process.returncode != 0
    gateway = registry.perforce(workspace.site.perforce_server)
    assert gateway.clients.find(workspace.client_name) is not None
    assert len(gateway.changes.list_opened(workspace.client_name)) == 1
    assert settled(workspace) == Workspace.State.READY


def test_workers_stopped_inside_a_deletion_harm_no_template_of_the_same_name(
    built_template: Template, lab: Lab, start_worker: Callable[..., Child]
) -> None:
    """One stops in each step, and all wake when a template of that name is there."""
    site, admin, name = built_template.site, built_template.owner, built_template.name
    lab.break_perforce({"command": "*", "latency_seconds": 0.3})
    lab.break_ontap({"path": "/api/*", "latency_seconds": 0.3})
    operation = template_delete(by=admin, template=built_template)
    stopped: list[Child] = []
    for step in operation.steps.order_by("pk"):
        worker = start_worker()
        # A short one may have ended when it is looked at.
        begun = Step.objects.filter(pk=step.pk, attempt__gt=0)
        wait_for(begun.exists)
        os.kill(worker.process.pid, signal.SIGSTOP)
        stopped.append(worker)
        time.sleep(STALLED_SECONDS)
    lab.break_perforce()
    lab.break_ontap()
    start_worker()
    wait_for(lambda: not Template.objects.exists())
    again = define_template(site, name=name)
    template_build(by=admin, template=again)
    wait_for(Template.objects.filter(state=Template.State.READY).exists)

    for worker in stopped:
        os.kill(worker.process.pid, signal.SIGCONT)
    wait_for(lambda: not any(worker.is_running for worker in stopped))

    assert registry.ontap(site).find_volume(again.volume_name) is not None
    perforce = registry.perforce(site.perforce_server)
    assert perforce.clients.find(again.client_name) is not None
    assert Template.objects.get().state == Template.State.READY


def test_a_worker_stopped_inside_a_transaction_holds_up_nobody(
    lab_workspace: Workspace, start_worker: Callable[..., Child]
) -> None:
    """The locks that it has are given back, although it never wakes."""
    workspace = lab_workspace
    workspace_retire(by=workspace.owner, workspace=workspace)
    parameters = connector_params()
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as other:
        other.execute("SELECT FROM engine_operation FOR UPDATE")
        first = start_worker()
        wait_until_somebody_waits_for_a_lock()
        os.kill(first.process.pid, signal.SIGSTOP)
        other.rollback()
    start_worker()

    wait_for(lambda: settled(workspace) == Workspace.State.TRASHED)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """A way to the database that can be cut."""
    directory = connection.settings_dict["DATA_DIR"]
    wire = Wire(directory=tmp_path / "wire", to=Path(directory) / SOCKET)
    yield wire
    wire.mend()
    wire.close()


def test_a_worker_whose_leave_came_late_unmounts_nothing(
    lab_workspace: Workspace,
    lab: Lab,
    wire: Wire,
    tmp_path: Path,
    start_worker: Callable[..., Child],
) -> None:
    """It asked in time, and hears of it when the owner has the workspace back."""
    workspace, owner = lab_workspace, lab_workspace.owner
    name = connection.settings_dict["NAME"]
    through = f"postgres://postgres@/{name}?host={tmp_path / 'wire'}"
    first = start_worker(by=through)
    lab.break_ontap({"method": "GET", "latency_seconds": 1.0})
    operation = workspace_retire(by=owner, workspace=workspace)
    running = operation.steps.filter(name="unmount", state=Step.State.RUNNING)
    wait_for(running.exists)
    wire.cut_answers()
    assert wire.is_used
    time.sleep(1.5)  # by now it has asked for leave to unmount
    lab.break_ontap()
    start_worker()
    wait_for(lambda: settled(workspace) == Workspace.State.TRASHED)
    workspace_restore(by=owner, workspace=workspace)
    wait_for(lambda: settled(workspace) == Workspace.State.READY)

    wire.mend()
    time.sleep(STALLED_SECONDS)

    assert first.is_running, first.last_lines()
    volume = registry.ontap(workspace.site).find_volume(workspace.volume_name)
    assert volume is not None
    assert volume.junction_path == workspace.junction_path


def test_a_command_outlives_an_absence_of_the_database(
    project: Project,
    make_template: Callable[..., Template],
    start_worker: Callable[..., Child],
) -> None:
    """It is not begun again, and what it did is kept."""
    project.submit_paths({"src/a.txt": "one\n"})
    command = f"echo begun >> runs; sleep {STALLED_SECONDS}"
    template = make_template(project, build_command=command)
    operation = template_build(by=template.owner, template=template)
    worker = start_worker()
    wait_for((template.path / "runs").exists)

    let_in(False)
    try:
        cut_off_everybody_else()
        time.sleep(2 * STALLED_SECONDS)
    finally:
        let_in(True)
    ended = Operation.objects.filter(pk=operation.pk).exclude(state="running")
    wait_for(ended.exists)

    assert ended.get().state == Operation.State.SUCCEEDED, worker.last_lines(count=30)
    assert (template.path / "runs").read_text() == "begun\n"
    assert operation.steps.get(name="build").attempt == 1


class Night:
    """A night in which the database says nothing: an hour goes by at each look."""

    def __init__(self, database: psycopg.Connection[Any]) -> None:
        self.database = database
        self.hours = 0

    def monotonic(self) -> float:
        self.hours += 1
        return self.hours * 3600.0

    def sleep(self, seconds: float) -> None:
        if self.monotonic() > 8 * 3600:
            self.database.rollback()


def context_of_job(*, is_stopping: bool) -> JobContext:
    return JobContext(
        app=app,
        job=Job(id=1, queue="host", lock=None, queueing_lock=None, task_name="step"),
        start_timestamp=0.0,
        abort_reason=lambda: None,
        additional_context={"is_stopping": lambda: is_stopping},
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize("break_it", [cut_by_the_server, left_in_an_answer])
def test_what_a_step_did_is_kept_by_another_connection(
    step: Step, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[], None]
) -> None:
    """The database is back at once, and the connection of before is not."""

    def perform(step: Step) -> None:
        break_it()
        # As a step notes progress, and how its command ended: without a transaction.
        with pytest.raises(OperationalError):
            Step.objects.filter(pk=step.pk).update(exit_code=0)

    monkeypatch.setattr(workflow, "perform", perform)

    tasks._attempt(context_of_job(is_stopping=False), step)

    step.refresh_from_db()
    assert step.state == Step.State.DONE


@pytest.fixture
def locks_are_given_up_at_once(step: Step) -> Iterator[None]:
    """By every connection that is made from now on."""
    name = sql.Identifier(connection.settings_dict["NAME"])
    alter = sql.SQL("ALTER DATABASE {} SET lock_timeout = 20").format(name)
    reset = sql.SQL("ALTER DATABASE {} RESET lock_timeout").format(name)
    for query in (alter, reset):
        with connection.cursor() as cursor:
            cursor.execute(query)
        leave_database()
        if query is alter:
            yield


def does_its_work(step: Step) -> None:
    """End as a step that succeeds."""


def is_refused(step: Step) -> None:
    raise StepRefused("The build ended with exit code 3.", code="build_failed")


def fails_for_good(step: Step) -> None:
    raise Refused("No.", system="ontap", operation="volume create")


@pytest.mark.parametrize(
    ("perform", "is_stopping", "state"),
    [
        (does_its_work, False, Step.State.DONE),
        (is_refused, False, Step.State.FAILED),
        (fails_for_good, False, Step.State.FAILED),
        (does_its_work, True, Step.State.RUNNING),
    ],
)
@pytest.mark.usefixtures("locks_are_given_up_at_once")
def test_what_a_step_did_is_kept_after_a_night_without_the_database(
    step: Step,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    perform: Callable[[Step], None],
    is_stopping: bool,
    state: str,
) -> None:
    """Unless its worker is told to stop, which then ends."""
    context = context_of_job(is_stopping=is_stopping)
    monkeypatch.setattr(workflow, "perform", perform)
    parameters = connector_params()
    parameters.pop("context", None)
    with psycopg.connect(**parameters) as other:
        night = Night(other)
        monkeypatch.setattr(tasks, "time", night)
        other.execute("SELECT FROM engine_operation FOR UPDATE")
        expected = pytest.raises(OperationalError) if is_stopping else nullcontext()
        with expected:
            tasks._attempt(context, step)
        other.rollback()

    assert (night.hours > 8) == (not is_stopping)
    step.refresh_from_db()
    assert step.state == state
    assert caplog.text.count("step_done_but_not_kept_yet") == (not is_stopping)


def settled(workspace: Workspace) -> str:
    workspace.refresh_from_db()
    return workspace.state
