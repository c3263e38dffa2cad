"""Jobs and steps: when they are tried again, given to another, or left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.sweeps.watch import watch_server
from provisioner.engine import dispatch, tasks, workflow
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.engine.retries import FIRST_RETRY_SECONDS, RETRY, wait_before
from provisioner.engine.sweeps import jobs as sweeps
from provisioner.gateways.errors import Busy, Refused, Unreachable
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.jobs import queue_sweep, run_jobs_once, settle
from tests.support.lab import Lab
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "hunter2-of-the-depot"


@pytest.fixture
def owner(jobs_emptied: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def queued(owner: User) -> Workspace:
    """Asked for, and its first two steps queued; nothing answers at its site."""
    return workspace_create(by=owner, template=SnapshotFactory.create().template)


def job_tried(attempts: int) -> Job:
    return Job(
        id=1,
        queue="storage",
        lock=None,
        queueing_lock=None,
        task_name="run_step",
        attempts=attempts,
    )


def failure(kind: type[Any]) -> Exception:
    error: Exception = kind("It failed.", system="ontap", operation="volume create")
    return error


def steps_queued(workspace: Workspace) -> list[Step]:
    return list(
        Step.objects.filter(
            operation__subject__workspace=workspace, state=Step.State.QUEUED
        ).order_by("position")
    )


def execute(
    sql: str, parameters: Sequence[str | float | list[int | None] | None] = ()
) -> list[Any]:
    """Procrastinate's models are read-only, so what a crash leaves is made here."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall()) if cursor.description else []


@pytest.fixture
def database_up_for_a_while() -> None:
    """Wait for the end of the time that the sweep gives workers after a start."""
    grace = settings.WORKER_STALLED_SECONDS + settings.WORKER_HEARTBEAT_SECONDS
    [[seconds]] = execute(
        "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float"
    )
    time.sleep(max(0.0, grace - seconds))


def give_jobs_to_a_worker(
    workspace: Workspace, *others: int, silent_seconds: float
) -> None:
    """Give the queued steps' jobs, and others, to a worker silent for so long."""
    [[worker]] = execute(
        "INSERT INTO procrastinate_workers (last_heartbeat) "
        "VALUES (now() - %s * interval '1 second') RETURNING id",
        [silent_seconds],
    )
    execute(
        "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s "
        "WHERE id = ANY(%s)",
        [worker, [*others, *(step.job_id for step in steps_queued(workspace))]],
    )


# --- the retry rule


def test_pauses_double_up_to_a_minute() -> None:
    pauses = [wait_before(attempt) for attempt in range(9)]

    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert wait_before(10_000) == 60


@pytest.mark.parametrize("kind", [Busy, Unreachable])
def test_transient_failures_are_tried_again_after_the_pause(kind: type[Any]) -> None:
    decision = RETRY.get_retry_decision(exception=failure(kind), job=job_tried(3))

    assert decision is not None
    assert decision.retry_at is not None
    pause = (decision.retry_at - timezone.now()).total_seconds()
    assert pause == pytest.approx(4, abs=0.5)


@pytest.mark.parametrize("error", [failure(Refused), ValueError("ours")])
def test_permanent_failures_and_bugs_are_not_tried_again(error: Exception) -> None:
    decision = RETRY.get_retry_decision(exception=error, job=job_tried(0))

    assert decision is None


@pytest.mark.parametrize(("seconds", "retries"), [(0, 0), (3.5, 3), (1800, 35)])
def test_retries_end_when_the_pauses_add_up_to_the_setting(
    seconds: float, retries: int, settings: Settings
) -> None:
    settings.STEP_GIVE_UP_SECONDS = seconds

    made = 0
    while RETRY.get_retry_decision(exception=failure(Busy), job=job_tried(made)):
        made += 1

    assert made == retries


def test_a_step_that_never_gets_an_answer_fails_with_its_reason(
    owner: User, published_template: Template, lab: Lab, settings: Settings
) -> None:
    settings.STEP_GIVE_UP_SECONDS = FIRST_RETRY_SECONDS
    lab.break_perforce({"command": "client", "drop": "before"})

    workspace = settle(workspace_create(by=owner, template=published_template))

    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code == "perforce_unreachable"
    step = workspace.operations.get().steps.get(name="client")
    assert (step.state, step.attempt) == (Step.State.FAILED, 2)
    assert step.error_message == workspace.status_message


def test_each_step_has_the_whole_time_for_its_retries(
    owner: User, published_template: Template, lab: Lab, settings: Settings
) -> None:
    settings.STEP_GIVE_UP_SECONDS = FIRST_RETRY_SECONDS
    busy = {"status": 503, "times": 1}
    lab.break_ontap(
        {"method": "POST", "path": "/api/storage/volumes*", **busy},
        {"method": "PATCH", "path": "/api/storage/volumes/*", **busy},
    )

    workspace = settle(workspace_create(by=owner, template=published_template))

    steps = workspace.operations.get().steps
    assert steps.get(name="clone").attempt == 2
    assert steps.get(name="export").attempt == 2
    assert workspace.state == Workspace.State.READY, workspace.status_message


# --- bugs


def test_a_bug_of_ours_fails_the_workspace_and_leaks_nothing(
    owner: User, published_template: Template
) -> None:
    # A pin that is no client form: no step can have left it so.
    Snapshot.objects.filter(template=published_template).update(client_spec=SECRET)

    workspace = settle(workspace_create(by=owner, template=published_template))

    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code == "internal_error"
    operation = workspace.operations.get()
    told = [
        workspace.status_message,
        operation.status_message,
        *operation.steps.values_list("error_message", flat=True),
        *workspace.events.values_list("message", flat=True),
    ]
    assert "Cloneyard itself" in workspace.status_message
    assert not [text for text in told if SECRET in text]
    step = operation.steps.get(name="access")
    assert ProcrastinateJob.objects.get(pk=step.job_id).status == "failed"


def test_a_step_whose_database_went_away_is_tried_again(
    owner: User, published_template: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = workflow.perform
    cut: list[str] = []

    def perform_on_a_cut_connection(step: Step) -> StepResult | None:
        if step.name not in cut:
            cut.append(step.name)
            execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return perform(step)

    monkeypatch.setattr(workflow, "perform", perform_on_a_cut_connection)

    workspace = settle(workspace_create(by=owner, template=published_template))

    assert workspace.state == Workspace.State.READY, workspace.status_message
    steps = workspace.operations.get().steps.all()
    assert {step.name: step.attempt for step in steps} == {
        step.name: 2 for step in steps
    }
    assert not Event.objects.filter(kind="workspace_failed").exists()


def test_what_an_attempt_writes_when_done_is_written_with_its_end_or_not_at_all(
    owner: User,
    published_template: Template,
    run_jobs: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    perform = workflow.perform

    def perform_until_taken_over(step: Step) -> StepResult | None:
        result = perform(step)
        if step.name == "export":
            Step.objects.filter(pk=step.pk).update(attempt=F("attempt") + 1)
        return result

    monkeypatch.setattr(workflow, "perform", perform_until_taken_over)
    workspace = workspace_create(by=owner, template=published_template)
    run_jobs()

    workspace.refresh_from_db()
    assert workspace.volume_uuid, "its step was done"
    assert workspace.root_mode == "", "its step was not"


# --- jobs that come twice, late, or never


def test_a_job_that_comes_twice_does_nothing(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    workspace = settle(workspace_create(by=owner, template=published_template))
    operation = workspace.operations.get()
    before = list(operation.steps.order_by("position").values())
    events = workspace.events.count()

    for step in operation.steps.all():
        tasks.run_step.configure(queue="storage").defer(step_id=step.pk)
    run_jobs()

    assert list(operation.steps.order_by("position").values()) == before
    assert workspace.events.count() == events


def test_a_job_of_a_step_that_is_no_more_does_nothing(
    jobs_emptied: None, run_jobs: Callable[[], None]
) -> None:
    job_id = tasks.run_step.configure(queue="storage").defer(step_id=10**9)

    run_jobs()

    assert ProcrastinateJob.objects.get(pk=job_id).status == "succeeded"


def test_a_job_of_an_ended_operation_does_nothing(
    queued: Workspace, run_jobs: Callable[[], None]
) -> None:
    provision = queued.operations.get()
    engine_states.end_operation(provision, Operation.State.CANCELED)

    run_jobs()

    assert not provision.steps.exclude(attempt=0).exists()
    steps = provision.steps.filter(name="access")
    assert {step.state for step in steps} == {Step.State.SKIPPED}


def test_retiring_leaves_the_jobs_before_with_nothing_to_do(
    queued: Workspace,
) -> None:
    provision = queued.operations.get()

    workspace_retire(by=queued.owner, workspace=queued)

    assert {step.state for step in provision.steps.all()} == {Step.State.SKIPPED}


@pytest.mark.usefixtures("database_up_for_a_while")
def test_jobs_of_a_silent_worker_are_given_to_another(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    workspace = workspace_create(by=owner, template=published_template)
    give_jobs_to_a_worker(workspace, silent_seconds=3600)

    queue_sweep(sweeps.sweep_jobs)
    settle(workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_after_a_start_of_the_database_workers_get_time_to_be_heard(
    queued: Workspace, run_jobs: Callable[[], None], settings: Settings
) -> None:
    settings.WORKER_HEARTBEAT_SECONDS = 366 * 86400.0
    give_jobs_to_a_worker(queued, silent_seconds=3600)

    queue_sweep(sweeps.sweep_jobs)
    run_jobs()

    jobs = ProcrastinateJob.objects.filter(task_name="run_step")
    assert {job.status for job in jobs} == {"doing"}


@pytest.mark.usefixtures("database_up_for_a_while")
def test_what_was_written_while_the_databases_clock_was_ahead_holds_nothing_up(
    owner: User,
    published_template: Template,
    run_jobs: Callable[[], None],
    settings: Settings,
) -> None:
    """A worker that died then would be alive, and its steps its own, until that day."""
    settings.WORKER_STALLED_SECONDS = 0.4
    workspace = workspace_create(by=owner, template=published_template)
    give_jobs_to_a_worker(workspace, silent_seconds=-40 * 86400)

    queue_sweep(sweeps.sweep_jobs)
    run_jobs()
    time.sleep(0.5)
    queue_sweep(sweeps.sweep_jobs)
    settle(workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_a_step_that_was_put_off_by_a_clock_that_was_ahead_goes_on(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    workspace = workspace_create(by=owner, template=published_template)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE procrastinate_jobs SET scheduled_at = now() + interval '40 days'"
        )

    queue_sweep(sweeps.sweep_jobs)
    run_jobs()
    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message


@pytest.mark.usefixtures("database_up_for_a_while")
def test_a_dead_job_like_one_that_waits_keeps_no_other_from_being_given_on(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    """The one that waits does so for the lock of the dead one: neither may go on."""
    server = published_template.site.perforce_server
    name = f"watch_server.{server.pk}"
    watch = watch_server.configure(lock=name, queueing_lock=name)
    dead = watch.defer(server_id=server.pk)
    workspace = workspace_create(by=owner, template=published_template)
    give_jobs_to_a_worker(workspace, dead, silent_seconds=3600)
    waiting = watch.defer(server_id=server.pk)

    queue_sweep(sweeps.sweep_jobs)
    settle(workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert ProcrastinateJob.objects.get(pk=waiting).status == "succeeded"
    assert not ProcrastinateJob.objects.filter(status="doing").exists()


def test_jobs_of_a_worker_that_lives_are_left_to_it(
    queued: Workspace, run_jobs: Callable[[], None]
) -> None:
    give_jobs_to_a_worker(queued, silent_seconds=0)

    queue_sweep(sweeps.sweep_jobs)
    queue_sweep(sweeps.sweep_steps)
    run_jobs()

    steps = steps_queued(queued)
    assert len(steps) == 1
    jobs = ProcrastinateJob.objects.filter(task_name="run_step")
    assert {(job.pk, job.status) for job in jobs} == {
        (step.job_id, "doing") for step in steps
    }


@pytest.mark.parametrize(
    "loss",
    [
        "DELETE FROM procrastinate_jobs",
        "UPDATE procrastinate_jobs SET status = 'failed'",
    ],
)
def test_a_step_whose_job_vanished_is_queued_again(
    loss: str, queued: Workspace
) -> None:
    lost = {step.name: step.job_id for step in steps_queued(queued)}
    execute(loss)

    sweeps.sweep_steps(timestamp=0)

    steps = steps_queued(queued)
    assert {step.name for step in steps} == set(lost)
    assert not {step.job_id for step in steps} & set(lost.values())
    jobs = ProcrastinateJob.objects.filter(status="todo")
    assert {job.pk for job in jobs} == {step.job_id for step in steps}


def test_steps_whose_jobs_are_there_are_found_by_one_query(queued: Workspace) -> None:
    """In a burst a thousand are in flight, and nothing is lost."""
    with CaptureQueriesContext(connection) as queries:
        sweeps.sweep_steps(timestamp=0)

    assert len(queries) == 1


def test_steps_of_ended_operations_are_not_queued_again(queued: Workspace) -> None:
    engine_states.end_operation(queued.operations.get(), Operation.State.CANCELED)
    execute("DELETE FROM procrastinate_jobs")

    sweeps.sweep_steps(timestamp=0)

    assert not ProcrastinateJob.objects.exists()


def test_a_step_that_died_in_an_ended_operation_holds_up_no_retirement(
    queued: Workspace,
) -> None:
    step = steps_queued(queued)[0]
    engine_states.start_step(step)
    workspace_retire(by=queued.owner, workspace=queued)
    execute("UPDATE procrastinate_jobs SET status = 'failed'")

    sweeps.sweep_steps(timestamp=0)

    step.refresh_from_db()
    assert step.state == Step.State.SKIPPED


# --- jobs that go on


def test_a_worker_for_everything_makes_a_workspace_in_a_job_for_each_branch(
    owner: User, published_template: Template
) -> None:
    workspace = settle(workspace_create(by=owner, template=published_template))

    steps = workspace.operations.get().steps.all()
    jobs = {step.name: step.job_id for step in steps}
    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert len({jobs[name] for name in ("access", "clone", "mount", "owner")}) == 1
    assert jobs["client"] == jobs["flush"]
    # Jobs run one after the other here: both branches have ended when they meet.
    assert set(jobs.values()) - {jobs["owner"], jobs["client"]} <= {jobs["p4config"]}


def test_a_step_of_another_queue_is_handed_to_those_who_serve_it(
    owner: User, published_template: Template
) -> None:
    """A worker for everything went on to it and died; its job is in the first queue."""
    workspace = workspace_create(by=owner, template=published_template)
    access, clone = workspace.operations.get().steps.order_by("position")[:2]
    engine_states.start_step(access)
    engine_states.finish_step(access, result=None)
    engine_states.start_step(clone, job_id=access.job_id)

    run_jobs_once(queues=["perforce"])

    clone.refresh_from_db()
    assert (clone.state, clone.attempt) == (Step.State.QUEUED, 1)
    job = ProcrastinateJob.objects.get(pk=clone.job_id)
    assert (job.queue_name, job.status) == ("storage", "todo")
    assert settle(workspace).state == Workspace.State.READY, workspace.status_message


@pytest.mark.parametrize(("is_asked_by_a_person", "goes_on"), [(True, 0), (False, 1)])
def test_a_machine_goes_on_in_another_queue_unless_a_person_waits(
    is_asked_by_a_person: bool, goes_on: int, owner: User
) -> None:
    template = SnapshotFactory.create().template
    ci = UserFactory.create(username="ci", uid=20003, gid=20000, is_service=True)
    workspace_create(by=owner if is_asked_by_a_person else ci, template=template)
    operation = workspace_create(
        by=ci, template=template, purpose=Workspace.Purpose.BUILD
    ).operations.get()
    access = operation.steps.get(name="access")
    engine_states.start_step(access)
    job = Job(
        id=access.job_id,
        queue="perforce",
        lock=None,
        queueing_lock=None,
        task_name="run_step",
        priority=dispatch.MACHINES_LATER,
    )
    context = JobContext(
        app=app, job=job, start_timestamp=0.0, abort_reason=lambda: None
    )

    following = tasks._settle_success(context, access, {}, None)

    clone = operation.steps.get(name="clone")
    assert (following is not None, clone.job_id == access.job_id) == (
        bool(goes_on),
    ) * 2
    assert clone.state == (Step.State.RUNNING if goes_on else Step.State.QUEUED)


# --- priorities


def test_what_has_begun_comes_before_what_has_not(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    """Otherwise the first of many requests would be ready only when all nearly are."""
    made = [
        workspace_create(
            by=owner, template=published_template, request_key=str(number)
        ).operations.get()
        for number in range(3)
    ]

    run_jobs()

    first, second, last = (
        {step.name: step for step in operation.steps.all()} for operation in made
    )
    began = last["access"].first_started_at
    assert began is not None
    ends = [steps["flush"].ended_at for steps in (first, second, last)]
    ended = [at for at in ends if at is not None]
    assert len(ended) == 3
    assert ended[0] < began
    assert ended[1] < ended[2]


def test_people_come_before_machines(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> None:
    ci = UserFactory.create(username="ci", uid=20003, gid=20000, is_service=True)
    of_ci = workspace_create(by=ci, template=published_template)
    of_alice = workspace_create(by=owner, template=published_template)

    run_jobs()

    def starts(workspace: Workspace) -> list[Any]:
        return sorted(
            Step.objects.filter(operation__subject__workspace=workspace)
            .values_list("first_started_at", flat=True)
            .exclude(first_started_at=None)
        )

    assert starts(of_alice)[-1] < starts(of_ci)[0]
