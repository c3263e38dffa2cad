"""Slots at a Perforce server: how many at a time, whose is next, and who waits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.freshness import refresh_state_of, server_pause_of
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.sweeps.watch import sweep_watch
from provisioner.engine import dispatch, retries, slots, tasks
from provisioner.engine import states as engine_states
from provisioner.engine.models import LockWait, Operation, PerforceUse, SlotBudget, Step
from provisioner.engine.sweeps import jobs as sweeps
from provisioner.engine.waits import wait_of
from provisioner.gateways.errors import Busy, Unreachable
from provisioner.gateways.perforce.types import LockUse
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.pools.sweeps import sweep_pools
from provisioner.sites.actions.pausing import (
    perforce_server_pause,
    perforce_server_resume,
)
from provisioner.sites.models import PerforceServer
from provisioner.sites.slots_overview import slots_for
from provisioner.workspaces.actions.retiring import workspace_retire
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.queued_steps import ask_to_flush, limit, queue
from tests.support.requests import workspace_create
from tests.support.warm_pools import make_pool

pytestmark = pytest.mark.django_db

SHORT, LONG = PerforceUse.SHORT, PerforceUse.LONG


@pytest.fixture
def alice() -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def ci() -> User:
    return UserFactory.create(username="ci", uid=20003, gid=20000, is_service=True)


@pytest.fixture
def template() -> Template:
    """Published; nothing answers at its site."""
    published: Snapshot = SnapshotFactory.create()
    return published.template


def ask_to_sync(template: Template, *, by: User) -> Step:
    """Request a build, and run it up to its sync."""
    template_build(by=by, template=template)
    return queue(template.operations.get(), "sync")


def has_slot(step: Step) -> bool:
    step.refresh_from_db()
    return step.state in (Step.State.QUEUED, Step.State.RUNNING) and bool(step.job_id)


def turns(steps: Iterable[Step]) -> list[bool]:
    return [has_slot(step) for step in steps]


def settle(step: Step) -> None:
    """End a step as its job would."""
    engine_states.start_step(step)
    tasks._settle_success(in_job(job_of(step)), step, {}, None)


def job_of(step: Step, *, tried: int = 0) -> Job:
    return Job(
        id=step.job_id,
        queue="perforce",
        lock=None,
        queueing_lock=None,
        task_name="run_step",
        task_kwargs={"step_id": step.pk, **({"tried": tried} if tried else {})},
        attempts=0,
    )


def in_job(job: Job) -> JobContext:
    """Return the context of a job whose worker serves its queue alone."""
    return JobContext(
        app=app,
        job=job,
        worker_queues=[job.queue],
        start_timestamp=0.0,
        abort_reason=lambda: None,
    )


def run(step: Step, *, job: Job | None = None) -> None:
    """Run a step's job once, or another job that was queued for it."""
    step.refresh_from_db()
    context = in_job(job or job_of(step))
    try:
        if tasks._begin(context, step):
            tasks._attempt(context, step)
    except Unreachable:
        pass
    finally:
        step.refresh_from_db()


def lose_job(step: Step) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs WHERE id = %s", [step.job_id])


# --- how many


@given(
    uses=st.lists(st.sampled_from([SHORT, LONG]), max_size=20),
    turns=st.integers(min_value=1, max_value=6),
)
def test_a_budget_is_kept_and_long_steps_leave_room(
    uses: list[PerforceUse], turns: int
) -> None:
    budget = slots.Budget(limit=turns)

    for use in uses:
        budget.take(use)

    # One short step may run in any case: at a limit of one, beside the one long.
    assert budget.short + budget.long <= max(turns, budget.long + 1)
    assert budget.long <= max(1, turns - 1)
    assert budget.has_room(SHORT) or budget.short >= 1
    if SHORT in uses:
        assert budget.short >= 1


def test_as_many_run_as_the_server_allows_and_the_next_follows_one_that_ends(
    alice: User, template: Template
) -> None:
    limit(template, 2)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(4)]
    assert turns(steps) == [True, True, False, False]

    settle(steps[1])

    assert turns(steps) == [True, False, True, False]
    assert steps[1].state == Step.State.DONE


def test_a_step_that_fails_gives_its_slot_to_the_next(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]
    engine_states.start_step(steps[0])

    tasks._settle_failure(steps[0], {}, code="no", message="No.", why=ValueError())

    assert turns(steps) == [False, True]


def test_two_servers_share_no_turn(alice: User, template: Template) -> None:
    other: Template = SnapshotFactory.create().template
    for one in (template, other):
        limit(one, 1)

    here = ask_to_flush(alice, template, key="here")
    there = ask_to_flush(alice, other, key="there")

    assert turns([here, there]) == [True, True]


def test_only_what_counts_waits(alice: User, template: Template) -> None:
    limit(template, 1)
    ask_to_flush(alice, template, key="first")
    workspace = workspace_create(by=alice, template=template, request_key="second")

    client = queue(workspace.operations.get(), "client")

    assert has_slot(client)


@pytest.mark.django_db(transaction=True)
def test_two_who_come_at_once_do_not_both_take_the_last_turn(
    jobs_emptied: None, alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [
        workspace_create(by=alice, template=template, request_key=str(number))
        .operations.get()
        .steps.get(name="flush")
        for number in range(6)
    ]

    def come(step: Step) -> None:
        try:
            with transaction.atomic():
                dispatch.defer_step(step.operation, step)
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=6) as threads:
        list(threads.map(come, steps))

    assert sum(turns(steps)) == 1


# --- whose


def test_people_come_before_machines_and_then_who_asked_first(
    alice: User, ci: User, template: Template
) -> None:
    limit(template, 1)
    running = ask_to_flush(ci, template, key="running")
    of_ci = [ask_to_flush(ci, template, key=f"ci{number}") for number in range(2)]
    of_alice = [ask_to_flush(alice, template, key=f"a{number}") for number in range(2)]

    order = []
    for _ in range(4):
        settle(running)
        [running] = [step for step in (*of_ci, *of_alice) if has_slot(step)]
        order.append(running)

    assert order == [*of_alice, *of_ci]


def test_syncs_of_templates_leave_a_slot_to_people(
    alice: User, template: Template
) -> None:
    limit(template, 3)
    admin = UserFactory.create(is_staff=True, uid=20009)
    others = [TemplateFactory.create(site=template.site) for _ in range(3)]

    syncs = [ask_to_sync(each, by=admin) for each in others]
    flush = ask_to_flush(alice, template, key="a")

    assert turns(syncs) == [True, True, False]
    assert has_slot(flush)


def test_a_sync_that_runs_for_hours_keeps_nobody_waiting_at_a_limit_of_one(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    admin = UserFactory.create(is_staff=True, uid=20009)
    sync = ask_to_sync(template, by=admin)

    flushes = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]

    assert turns([sync, *flushes]) == [True, True, False]


# --- retries, ended operations, lost jobs


def test_a_flush_that_waits_for_its_next_try_keeps_no_other_from_its_turn(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]

    run(steps[0])  # nothing answers

    assert steps[0].state == Step.State.RETRYING
    assert has_slot(steps[1])


def test_a_retry_waits_where_its_slot_is_taken_and_keeps_its_count(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    first, second = [
        ask_to_flush(alice, template, key=str(number)) for number in range(2)
    ]
    run(first)
    engine_states.start_step(second)

    run(first)

    assert slots.is_waiting(first)
    assert first.attempt == 1
    tasks._settle_success(in_job(job_of(second)), second, {}, None)
    assert has_slot(first)
    assert ProcrastinateJob.objects.get(pk=first.job_id).args["tried"] == 1


def test_a_retry_goes_on_where_there_is_room(alice: User, template: Template) -> None:
    limit(template, 1)
    step = ask_to_flush(alice, template, key="a")
    run(step)

    run(step)

    assert (step.state, step.attempt) == (Step.State.RETRYING, 2)


@pytest.mark.parametrize(("tried", "pause"), [(0, 0.5), (3, 4)])
def test_pauses_go_on_growing_after_a_wait_for_a_turn(
    tried: int, pause: float, alice: User, template: Template
) -> None:
    step = ask_to_flush(alice, template, key="a")
    error = Busy("It is busy.", system="perforce", operation="sync")

    job = job_of(step, tried=tried)

    assert retries.wait_before(retries.attempts_of(job)) == pause
    assert retries.RETRY.get_retry_decision(exception=error, job=job)
    assert not retries.RETRY.get_retry_decision(
        exception=error, job=job_of(step, tried=36)
    )


def test_a_job_leaves_a_step_that_waits_for_a_slot_alone(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    first, waits = [
        ask_to_flush(alice, template, key=str(number)) for number in range(2)
    ]

    assert turns([first, waits]) == [True, False]

    run(waits, job=job_of(first))

    assert slots.is_waiting(waits)
    assert waits.attempt == 0


def test_the_sweep_of_lost_jobs_does_not_queue_a_waiting_step(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]

    sweeps.sweep_steps(timestamp=0)

    assert turns(steps) == [True, False]


def test_a_step_whose_job_was_lost_keeps_its_slot(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]
    engine_states.start_step(steps[0])
    lose_job(steps[0])

    sweeps.sweep_slots(timestamp=0)
    assert turns(steps) == [True, False]

    sweeps.sweep_steps(timestamp=0)
    assert turns(steps) == [True, False]
    assert ProcrastinateJob.objects.filter(pk=steps[0].job_id).exists()


def test_who_gives_up_waiting_leaves_the_slots_to_others(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(3)]
    for step in steps[:2]:
        workspace = step.operation.subject.workspace
        assert workspace is not None
        workspace_retire(by=alice, workspace=workspace)

    sweeps.sweep_slots(timestamp=0)

    assert turns(steps) == [False, False, True]
    for step in steps[:2]:
        assert step.state == Step.State.SKIPPED


def test_a_larger_budget_is_used_at_the_next_sweep(
    alice: User, template: Template
) -> None:
    limit(template, 1)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(3)]
    limit(template, 2)

    sweeps.sweep_slots(timestamp=0)

    assert turns(steps) == [True, True, False]


def test_steps_of_an_earlier_release_run_as_before(
    alice: User, template: Template
) -> None:
    operation = workspace_create(by=alice, template=template).operations.get()
    operation.steps.update(perforce_use="", perforce_server=None)
    step = queue(operation, "flush")

    run(step)

    assert step.attempt == 1


def test_what_is_made_for_a_pool_comes_after_all_who_ask(
    alice: User, ci: User, template: Template
) -> None:
    limit(template, 1)
    make_pool(template, ci, size=1)
    sweep_pools(timestamp=0)
    first = ask_to_flush(alice, template, key="1")
    pooled = queue(Operation.objects.get(subject__workspace__is_pooled=True), "flush")
    asked = ask_to_flush(ci, template, key="2")

    settle(first)

    assert turns([pooled, asked]) == [False, True]


# --- how many are before one


def before(step: Step) -> int:
    step.refresh_from_db()
    wait = wait_of(step)
    assert wait is not None
    return wait.before


def test_a_waiting_step_says_how_many_come_before_it(
    alice: User, ci: User, template: Template
) -> None:
    limit(template, 1)
    admin = UserFactory.create(is_staff=True, uid=20009)
    running = ask_to_flush(alice, template, key="running")
    of_ci = [ask_to_flush(ci, template, key=f"ci{number}") for number in range(2)]
    first_sync, second_sync = [
        ask_to_sync(TemplateFactory.create(site=template.site), by=admin)
        for _ in range(2)
    ]
    of_alice = [ask_to_flush(alice, template, key=f"a{number}") for number in range(2)]

    assert [before(step) for step in of_alice] == [0, 1]
    assert [before(step) for step in of_ci] == [2, 3]
    # What is long waits for all that is short and of people, and holds up none of it.
    assert [before(step) for step in (first_sync, second_sync)] == [2, 3]
    running.refresh_from_db()
    assert wait_of(running) is None
    wait = wait_of(of_ci[0])
    assert wait is not None
    assert wait.sentence == (
        f"Waits for a slot at the Perforce server {wait.server}: 2 are before it."
    )


# --- the pause


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="root", uid=20010, is_staff=True)


def pause(
    template: Template, *, by: User, reason: str = "A checkpoint is made"
) -> None:
    perforce_server_pause(by=by, server=template.site.perforce_server, reason=reason)


def resume(template: Template, *, by: User) -> bool:
    return perforce_server_resume(by=by, server=template.site.perforce_server)


def test_at_a_paused_server_nothing_begins_until_it_goes_on(
    alice: User, admin: User, template: Template
) -> None:
    pause(template, by=admin)
    limit(template, 1)
    flushes = [ask_to_flush(alice, template, key=str(number)) for number in range(2)]
    light = flushes[0].operation.steps.get(name="access")

    assert turns([*flushes, light]) == [False, False, False]
    wait = wait_of(light)
    assert wait is not None
    assert wait.sentence == (
        f"The Perforce server {wait.server} is paused: A checkpoint is made. It "
        "continues once an administrator resumes the server."
    )
    sweeps.sweep_slots(timestamp=0)
    sweeps.sweep_steps(timestamp=0)
    assert turns([*flushes, light]) == [False, False, False]

    assert resume(template, by=admin)

    assert turns([*flushes, light]) == [True, False, True]
    assert wait_of(light) is None


def test_a_job_that_was_queued_before_the_pause_begins_nothing(
    alice: User, admin: User, template: Template
) -> None:
    step = ask_to_flush(alice, template, key="a")
    pause(template, by=admin)

    run(step)

    assert slots.is_waiting(step)
    assert step.attempt == 0


def test_what_has_begun_goes_on_through_a_pause_and_its_next_step_waits(
    alice: User, admin: User, template: Template
) -> None:
    operation = workspace_create(by=alice, template=template).operations.get()
    access = operation.steps.get(name="access")
    engine_states.start_step(access)
    pause(template, by=admin)

    assert tasks._settle_success(in_job(job_of(access)), access, {}, None) is None

    client = operation.steps.get(name="client")
    assert slots.is_waiting(client)
    # What does not use Perforce goes on.
    clone = operation.steps.get(name="clone")
    assert (clone.state, bool(clone.job_id)) == (Step.State.QUEUED, True)


def test_another_server_is_not_paused(
    alice: User, admin: User, template: Template
) -> None:
    other: Template = SnapshotFactory.create().template
    pause(other, by=admin)

    assert has_slot(ask_to_flush(alice, template, key="a"))


def test_a_pause_and_its_end_are_in_the_audit_log(
    admin: User, template: Template
) -> None:
    pause(template, by=admin, reason=" A checkpoint ")
    pause(template, by=admin, reason="It takes longer")
    assert SlotBudget.objects.get().paused_reason == "It takes longer"
    assert resume(template, by=admin)
    assert not resume(template, by=admin)

    told = Event.objects.filter(subject_kind="perforce_server", actor=admin)
    assert list(told.order_by("pk").values_list("kind", "reason")) == [
        ("perforce_server_paused", "A checkpoint"),
        ("perforce_server_paused", "It takes longer"),
        ("perforce_server_resumed", ""),
    ]


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_pause_needs_a_reason(reason: str, admin: User, template: Template) -> None:
    with pytest.raises(InvalidRequest):
        pause(template, by=admin, reason=reason)
    assert not SlotBudget.objects.exists()


def test_the_switch_is_for_administrators(
    alice: User, admin: User, template: Template
) -> None:
    with pytest.raises(NotAllowed):
        pause(template, by=alice)
    pause(template, by=admin)
    with pytest.raises(NotAllowed):
        resume(template, by=alice)
    assert SlotBudget.objects.get().is_paused


def test_templates_of_a_paused_server_are_not_refreshed(
    admin: User, template: Template
) -> None:
    assert not refresh_state_of(template, freshness=None).is_paused_elsewhere
    pause(template, by=admin)

    assert refresh_state_of(template, freshness=None).is_paused_elsewhere
    assert "is paused: A checkpoint" in server_pause_of(template)
    sweep_watch(timestamp=0)
    assert not ProcrastinateJob.objects.filter(task_name="watch_server").exists()
    resume(template, by=admin)
    sweep_watch(timestamp=0)
    assert ProcrastinateJob.objects.filter(task_name="watch_server").exists()


# --- backing off


def waited(step: Step, ms: int) -> None:
    """Let the server tell that a command of a step waited so long."""
    use = LockUse(command="sync -k", table="db.have", waited_ms=ms, held_ms=1)
    slots.observe(step, use)


def present(template: Template) -> int:
    server = PerforceServer.objects.get(pk=template.site.perforce_server_id)
    known = SlotBudget.objects.filter(server=server).first()
    return slots.present_limit(server, known, now=timezone.now())


def let_pass(**times: float) -> None:
    row = SlotBudget.objects.get()
    assert row.backed_off_at is not None
    row.backed_off_at -= dt.timedelta(**times)
    row.save()


def test_after_a_long_wait_half_as_many_run_and_then_one_more_each_minute(
    alice: User, template: Template
) -> None:
    limit(template, 4)
    steps = [ask_to_flush(alice, template, key=str(number)) for number in range(6)]
    waited(steps[0], slots.LONG_WAIT_MS)
    assert present(template) == 2

    settle(steps[0])
    assert turns(steps) == [False, True, True, True, False, False]

    settle(steps[1])
    settle(steps[2])
    assert turns(steps) == [False, False, False, True, True, False]

    let_pass(minutes=1)
    assert present(template) == 3
    sweeps.sweep_slots(timestamp=0)
    assert turns(steps) == [False, False, False, True, True, True]
    let_pass(minutes=30)
    assert present(template) == 4


def test_a_jam_that_many_waited_for_is_one_reason_and_a_later_one_another(
    alice: User, template: Template
) -> None:
    limit(template, 8)
    step = ask_to_flush(alice, template, key="a")
    for _ in range(3):
        waited(step, 900)
    assert present(template) == 4

    let_pass(seconds=slots.SAME_JAM_SECONDS + 1)
    waited(step, 900)
    assert present(template) == 2
    for _ in range(5):
        let_pass(seconds=slots.SAME_JAM_SECONDS + 1)
        waited(step, 900)
    assert present(template) == 1


def test_short_waits_are_shown_and_change_nothing(
    alice: User, template: Template
) -> None:
    step = ask_to_flush(alice, template, key="a")
    waited(step, slots.WORTH_TELLING_MS - 1)
    assert not LockWait.objects.exists()

    waited(step, slots.LONG_WAIT_MS - 1)

    assert LockWait.objects.get().waited_ms == slots.LONG_WAIT_MS - 1
    assert present(template) == 4


def test_the_last_waits_are_kept(alice: User, template: Template) -> None:
    step = ask_to_flush(alice, template, key="a")
    at, server = timezone.now(), template.site.perforce_server
    LockWait.objects.bulk_create(
        LockWait(
            server=server,
            at=at - dt.timedelta(seconds=number),
            operation=step.operation,
            waited_ms=number,
            held_ms=0,
        )
        for number in range(slots.WAITS_KEPT + 5)
    )

    waited(step, 30)

    assert LockWait.objects.count() == slots.WAITS_KEPT
    assert LockWait.objects.filter(waited_ms=30, table="db.have").exists()
    assert not LockWait.objects.filter(waited_ms=slots.WAITS_KEPT).exists()


def test_a_pause_and_a_back_off_do_not_undo_each_other(
    alice: User, admin: User, template: Template
) -> None:
    step = ask_to_flush(alice, template, key="a")
    waited(step, 900)
    pause(template, by=admin)
    waited(step, 900)
    assert SlotBudget.objects.get().is_paused
    resume(template, by=admin)

    assert present(template) == 2
    [server] = slots_for(admin)
    assert (server.limit, server.present_limit) == (4, 2)
    assert server.limit_reason.startswith("2 may run at a time and not 4, because")
    assert len(server.lock_waits) == 2
