"""Procrastinate entry points: load, call the workflow, decide what a failure means.

A job runs a step, and goes on with those after it that are for the same queue. It is
deferred in the transaction that marks its step as queued, so neither is ever without
the other.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from itertools import count
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from procrastinate import BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine import slots, states, subjects, workflow
from provisioner.engine.fencing import AttemptLeave, leave_seconds
from provisioner.engine.job_manager import finish_of_its_worker, retry_of_its_worker
from provisioner.engine.models import HasOperations, Operation, Step
from provisioner.engine.queueing import defer
from provisioner.engine.results import StepResult
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workflow import Failure
from provisioner.gateways import fence
from provisioner.gateways.errors import GatewayError, TransientGatewayError
from provisioner.lib import clocks
from provisioner.lib.databases import DATABASE_WENT_AWAY
from provisioner.lib.refusals import StateChanged, StepCutShort, StepRefused

log = structlog.get_logger(__name__)

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 60.0
STOPS_WITHIN_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 5.0

IN_FLIGHT = (Step.State.QUEUED, Step.State.RUNNING, Step.State.RETRYING)

HEARD_IN_THE_FUTURE = """
    UPDATE procrastinate_workers SET last_heartbeat = now()
    WHERE last_heartbeat > now() + %(seconds)s * interval '1 second'
"""
PUT_OFF_TOO_FAR = """
    UPDATE procrastinate_jobs SET scheduled_at = now()
    WHERE status = 'todo' AND task_name = %(task)s
        AND scheduled_at > now() + %(seconds)s * interval '1 second'
"""

PEOPLE_FIRST = 10
MACHINES_LATER = 0
BEHIND_REQUESTS = -5
# Of these, what goes on comes before what has not begun: requests are served one after
# the other, and not all of them at the end.
ALREADY_BEGUN = 1


def wait_before(attempts: int) -> float:
    """Return the pause in seconds after this many earlier attempts: 0.5, 1, 2 … 60."""
    return float(min(FIRST_RETRY_SECONDS * 2**attempts, LONGEST_RETRY_SECONDS))


def _attempts_of(job: Job) -> int:
    """Return how often its step was tried, including earlier jobs."""
    tried = job.task_kwargs.get("tried", 0)
    assert isinstance(tried, int)
    return job.attempts + tried


class TransientRetry(BaseRetryStrategy):
    """Try again after a transient failure, until the pauses add up to the setting.

    The loss of the database is one, too.

    STEP_GIVE_UP_SECONDS 1800 means some 36 attempts.
    """

    def get_retry_decision(
        self, *, exception: BaseException, job: Job
    ) -> RetryDecision | None:
        pause = self.pause_after(exception, job=job)
        return None if pause is None else RetryDecision(retry_at=timezone.now() + pause)

    def pause_after(self, exception: BaseException, *, job: Job) -> dt.timedelta | None:
        """Return how long to wait before the next attempt; None: there is none."""
        if not isinstance(exception, (TransientGatewayError, *DATABASE_WENT_AWAY)):
            return None
        attempts = _attempts_of(job)
        waited = sum(wait_before(attempt) for attempt in range(attempts + 1))
        if waited > settings.STEP_GIVE_UP_SECONDS:
            return None
        return dt.timedelta(seconds=wait_before(attempts))


RETRY = TransientRetry()


@app.task(name="run_step", pass_context=True, retry=RETRY)
def run_step(context: JobContext, *, step_id: int, tried: int = 0) -> None:
    """Run a step, then those after it that this worker can go on with at once.

    A step that is settled already, or whose operation has ended, is left alone: that
    is what a job sees that was repeated after a killed worker. `tried` is how often
    earlier jobs tried it that then had to wait for a slot.
    """
    step = _step_of(context.job, step_id=step_id)
    if step is None or not _begin(context, step):
        return
    while step is not None:
        ids = step.operation.subject_ids
        named = {f"{kind}_id": pk for kind, pk in ids.items()}
        with structlog.contextvars.bound_contextvars(
            operation_id=step.operation_id, step=step.name, **named
        ):
            step = _attempt(context, step)


def _step_of(job: Job, *, step_id: int) -> Step | None:
    """Return the step that this job is at: the first it was queued for, or a later.

    What it is about comes by a query of its own: the database would plan one join with
    every kind of subject for longer than it takes to answer both.
    """
    steps = Step.objects.select_related("operation__requested_by", "operation__subject")
    at = steps.filter(job_id=job.id, state__in=IN_FLIGHT).first()
    step = at or steps.filter(pk=step_id).first()
    if step is not None:
        subjects.load_row(step.operation)
    return step


def _begin(context: JobContext, step: Step) -> bool:
    """Begin the step that a job came for; return whether there is one to run."""
    try:
        if step.operation.state != Operation.State.RUNNING:
            states.skip_step(step)
            return False
        if step.state in IN_FLIGHT and not _serves(context, step):
            return _hand_over(context.job, step)
        return _start(context.job, step)
    except StateChanged:
        return False


def _serves(context: JobContext, step: Step) -> bool:
    """Return whether the slots that a job runs in are for the step."""
    queue = workflow.spec_of(step).queue_at(step.operation.site)
    pool = context.additional_context.get("pool")
    if isinstance(pool, Pool):
        return pool.serves(queue)
    return context.worker_queues is None or queue in context.worker_queues


def _hand_over(job: Job, step: Step) -> bool:
    """Give a step to those who serve its queue: another had gone on to it, and died."""
    with transaction.atomic():
        operation = _lock(step.operation)
        step.refresh_from_db(fields=["state", "job_id", "attempt"])
        is_running = operation.state == Operation.State.RUNNING
        if is_running and step.state in IN_FLIGHT and step.job_id == job.id:
            _defer(operation, step)
    return False


def _start(job: Job, step: Step) -> bool:
    """Begin an attempt; where it is not the step's turn, let it wait for that."""
    if not step.perforce_use:
        states.start_step(step)
        return True
    if step.job_id != job.id:
        return False  # It waits for a slot, or has it with another job.
    with transaction.atomic():
        if slots.may_start(step):
            states.start_step(step)
            return True
        states.queue_step(step, job_id=None)
    return False


def _attempt(context: JobContext, step: Step) -> Step | None:
    """Run one attempt; return the step with which the job goes on, if any."""
    try:
        with fence.asking(AttemptLeave(step, job=context.job)):
            result = workflow.perform(step)
    except StepRefused as refusal:
        _settle_failure(step, code=refusal.code, message=refusal.sentence, why=refusal)
    except GatewayError as error:
        pause = RETRY.pause_after(error, job=context.job)
        if pause is None:
            log.error("step_failed", attempt=step.attempt, **error.log_context())
            code = f"{error.system}_{type(error).__name__}".lower()
            _settle_failure(step, code=code, message=error.sentence, why=error)
            return None
        log.warning("step_will_be_retried", attempt=step.attempt, **error.log_context())
        with contextlib.suppress(StateChanged), transaction.atomic():
            states.retry_step_later(
                step,
                code=type(error).__name__.lower(),
                message=error.sentence,
                retry_at=clocks.database_now() + pause,
            )
            _release_slot(step)
        raise
    except StepCutShort:
        _settle_cut_short(step)
    except DATABASE_WENT_AWAY:
        raise  # The job is tried again, and finds the step as it was left.
    except Exception as bug:
        # Ours to mend: settled, so that nobody waits for ever, and left to rise.
        message = (
            "Something went wrong in Cloneyard itself. It will not be retried by "
            "itself; an administrator finds the details in the log."
        )
        _settle_failure(step, code="internal_error", message=message, why=bug)
        raise
    else:
        return _settle_when_heard(context, step, result)
    return None


def _settle_when_heard(
    context: JobContext, step: Step, result: StepResult | None
) -> Step | None:
    """Keep what a step did, however long the database is away: a build takes hours.

    A worker that is told to stop gives up a minute later. Where another has followed
    meanwhile, its attempt counts.
    """
    is_stopping = context.additional_context.get("is_stopping", lambda: False)
    gives_up_at: float | None = None
    for tries in count():
        try:
            return _settle_success(context, step, result)
        except DATABASE_WENT_AWAY as error:
            if gives_up_at is None and is_stopping():
                gives_up_at = time.monotonic() + STOPS_WITHIN_SECONDS
            is_late = gives_up_at is not None and time.monotonic() > gives_up_at
            if is_late or context.should_abort():
                raise
            log.warning("step_done_but_not_kept_yet", error=str(error))
            time.sleep(min(wait_before(tries), LONGEST_PAUSE_SECONDS))
    raise AssertionError("a count has no end")


def _lock(operation: Operation) -> Operation:
    """Lock an operation, and have its present state; the rows around it stay."""
    locked = Operation.objects.select_for_update().order_by()
    operation.state = locked.values_list("state", flat=True).get(pk=operation.pk)
    return operation


def _read_subject_anew(operation: Operation) -> None:
    """Have what an operation is about as it is now, at the same site."""
    subject, site = operation.subject.row, operation.site
    subject.refresh_from_db()
    subject.site = site


def _settle_success(
    context: JobContext, step: Step, result: StepResult | None
) -> Step | None:
    with transaction.atomic():
        operation = _lock(step.operation)
        try:
            states.finish_step(step, result=result)
        except StateChanged:
            return None
        following = None
        if operation.state == Operation.State.RUNNING:
            following = advance(operation, context=context)
        _release_slot(step)
    return following


def _settle_cut_short(step: Step) -> None:
    """Skip a step of an ended operation; where a job was lost, another goes on."""
    with contextlib.suppress(StateChanged), transaction.atomic():
        if _lock(step.operation).state != Operation.State.RUNNING:
            states.skip_step(step)
            _release_slot(step)


def _settle_failure(step: Step, *, code: str, message: str, why: BaseException) -> None:
    """End the step and its operation, and say on its subject why."""
    with transaction.atomic():
        operation = _lock(step.operation)
        try:
            states.fail_step(step, code=code, message=message)
        except StateChanged:
            return
        end_badly(operation, code=code, message=message, why=why)
        _release_slot(step)


def end_badly(
    operation: Operation, *, code: str, message: str, why: BaseException | None = None
) -> None:
    """End an operation whose step failed, and call its feature's `on_failure`."""
    findings = why.findings if isinstance(why, StepRefused) else None
    is_refused = findings is not None
    to = Operation.State.REFUSED if is_refused else Operation.State.FAILED
    if not states.end_operation(
        operation, to, code=code, message=message, findings=findings
    ):
        return
    _read_subject_anew(operation)
    states.skip_waiting_steps(operation)
    failure = Failure(code=code[:60], message=message, is_refused=is_refused)
    workflow.workflow_of(operation).on_failure(operation, failure)


def advance(operation: Operation, *, context: JobContext | None = None) -> Step | None:
    """Queue the steps that may start now, or end the operation where none is left.

    Call it inside the transaction that settled a step, with the operation locked. The
    first that the job of `context` can go on with is begun and returned, and not
    queued: no other worker would be faster.
    """
    steps = sorted(operation.steps.order_by(), key=lambda step: step.position)
    for step in steps:
        step.operation = operation  # it is at hand, with its site
    following: Step | None = None
    for step in workflow.ready_to_start(operation, steps):
        can_go_on = context is not None and following is None
        if context is not None and can_go_on and _can_go_on(context, step):
            if _go_on(context.job, step):
                following = step
        else:
            defer_step(operation, step)
    if all(step.state in (Step.State.DONE, Step.State.SKIPPED) for step in steps):
        states.end_operation(operation, Operation.State.SUCCEEDED)
        _read_subject_anew(operation)
        workflow.workflow_of(operation).on_success(operation)
    return following


def _can_go_on(context: JobContext, step: Step) -> bool:
    """Return whether a job's worker serves the step, and nobody is kept waiting by it.

    A job that was tried again has used up some of its time for retries: the next step
    gets a job of its own, with all of it. Where the job would go on in another queue,
    those who come before it are not to wait for longer than one step.
    """
    if _attempts_of(context.job) or not _serves(context, step):
        return False
    queue = workflow.spec_of(step).queue_at(step.operation.site)
    if context.job.queue == queue or context.job.priority >= PEOPLE_FIRST:
        return True
    before = ProcrastinateJob.objects.filter(
        Q(scheduled_at=None) | Q(scheduled_at__lte=Now()),
        status="todo",
        priority__gt=context.job.priority + ALREADY_BEGUN,
        task_name=run_step.name,
    )
    return not before.exists()


def _go_on(job: Job, step: Step) -> bool:
    """Begin a step in the job of the one before, unless it has to wait for its turn."""
    server_id = step.perforce_server_id
    if server_id is not None and step.perforce_use in slots.NEEDS_SLOT:
        states.queue_step(step, job_id=None)
        return give_slots(server_id, to=step, job=job)
    if server_id is not None and slots.is_paused(server_id):
        states.queue_step(step, job_id=None)
        return False
    states.start_step(step, job_id=job.id)
    return True


def start_operation(
    kind: str,
    *,
    about: HasOperations,
    by: User,
    parameters: dict[str, Any] | None = None,
    is_background: bool = False,
) -> Operation:
    """Write an operation with its steps and queue the first ones.

    What is done in the background comes after everything that anybody asks for.
    """
    operation = Operation.objects.create(
        kind=kind,
        requested_by=by,
        is_background=is_background,
        subject=about.subject,
        parameters=parameters or {},
    )
    steps = Step.objects.bulk_create(
        Step(
            operation=operation,
            name=spec.name,
            position=position,
            perforce_use=spec.perforce,
            perforce_server=operation.site.perforce_server if spec.perforce else None,
        )
        for position, spec in enumerate(workflow.specs_of(operation))
    )
    for step in workflow.ready_to_start(operation, steps):
        defer_step(operation, step)
    return operation


def defer_step(operation: Operation, step: Step) -> None:
    """Queue a step's job in the current transaction, or let it wait for a slot."""
    server_id = step.perforce_server_id
    needs_slot = step.perforce_use in slots.NEEDS_SLOT
    if server_id and (needs_slot or slots.is_paused(server_id)):
        states.queue_step(step, job_id=None)
        give_slots(server_id)
    else:
        _defer(operation, step)


def _defer(operation: Operation, step: Step) -> None:
    spec = workflow.spec_of(step)
    task = run_step.configure(
        queue=spec.queue_at(operation.site),
        priority=_priority(operation) + (ALREADY_BEGUN if spec.after else 0),
    )
    tried = {"tried": step.attempt} if step.attempt else {}
    states.queue_step(step, job_id=defer(task, step_id=step.pk, **tried))


def _priority(operation: Operation) -> int:
    if operation.is_background:
        return BEHIND_REQUESTS
    return MACHINES_LATER if operation.requested_by.is_service else PEOPLE_FIRST


def give_slots(
    server_id: int, *, to: Step | None = None, job: Job | None = None
) -> bool:
    """Queue the jobs of the steps whose slot is free at a Perforce server.

    State the turn of `to`, it is begun in this job instead: say whether it was.
    """
    has_its_slot = False
    for step in slots.next_in_line(server_id):
        if to is not None and job is not None and step.pk == to.pk:
            states.start_step(to, job_id=job.id)
            has_its_slot = True
        else:
            _defer(step.operation, step)
    return has_its_slot


def _release_slot(step: Step) -> None:
    """Let others come after a step that has ended, or pauses for a retry.

    As the last thing in a transaction: it locks the row of the server.
    """
    if step.perforce_use in slots.NEEDS_SLOT:
        assert step.perforce_server_id is not None
        give_slots(step.perforce_server_id)


@app.periodic(cron="* * * * * */5")
@app.task(name="sweep_slots", queue="sweeps", queueing_lock="sweep_slots")
def sweep_slots(timestamp: int) -> None:
    """Give out slots that a crash or the end of an operation left unused."""
    for server_id in slots.servers_waited_for():
        with transaction.atomic():
            give_slots(server_id)


@app.periodic(cron="* * * * * */5")
@app.task(
    name="sweep_jobs", queue="sweeps", queueing_lock="sweep_jobs", pass_context=True
)
async def sweep_jobs(context: JobContext, timestamp: int) -> None:
    """Give the jobs of workers that fell silent to others.

    Where the database itself was away, all were silent: they get the time to be heard.

    Source: procrastinate docs, how-to "retry stalled jobs".
    """
    await _forget_the_future()
    if await _database_started_lately():
        return
    stalled = await app.job_manager.get_stalled_jobs(
        seconds_since_heartbeat=settings.WORKER_STALLED_SECONDS
    )
    for job in stalled:
        await _give_to_another(job)


async def _forget_the_future() -> None:
    """Set right what was written while the database's own clock was ahead.

    A worker that died then would count as alive until that time comes, and a step that
    paused would wait until then.
    """
    update = app.job_manager.connector.execute_query_async
    await update(query=HEARD_IN_THE_FUTURE, seconds=settings.WORKER_STALLED_SECONDS)
    await update(
        query=PUT_OFF_TOO_FAR, task=run_step.name, seconds=2 * LONGEST_RETRY_SECONDS
    )


async def _database_started_lately() -> bool:
    answer = await app.job_manager.connector.execute_query_one_async(
        query="SELECT now() - pg_postmaster_start_time() < %(seconds)s * interval '1 s'"
        " AS is_new",
        seconds=settings.WORKER_STALLED_SECONDS + settings.WORKER_HEARTBEAT_SECONDS,
    )
    return bool(answer["is_new"])


async def _give_to_another(job: Job) -> None:
    """Queue a job again; drop it where one like it waits, and maybe for its lock.

    Not at once: its worker, cut off or slow, may have been given leave just now.
    """
    leave = dt.timedelta(seconds=leave_seconds())
    retry_at = await sync_to_async(clocks.database_now)() + leave
    connector = app.job_manager.connector
    try:
        is_given = await retry_of_its_worker(connector, job, retry_at=retry_at)
    except UniqueViolation:
        log.warning("stalled_job_dropped", job_id=job.id, task=job.task_name)
        with contextlib.suppress(ConnectorException):
            await finish_of_its_worker(
                connector, job, status=Status.FAILED, delete_job=True
            )
    except ConnectorException as failure:
        # It is met again by the next sweep.
        log.warning("stalled_job_left", job_id=job.id, why=str(failure))
    else:
        if is_given:  # else it has just ended, or another sweep was faster
            log.warning("stalled_job_retried", job_id=job.id, task=job.task_name)


@app.periodic(cron="* * * * * */30")
@app.task(name="sweep_steps", queue="sweeps", queueing_lock="sweep_steps")
def sweep_steps(timestamp: int) -> None:
    """Queue again each unsettled step whose job is gone: nothing waits for ever.

    One of an ended operation is settled: a retirement waits for it.
    """
    alive = ProcrastinateJob.objects.filter(status__in=("todo", "doing"))
    for step in Step.objects.filter(state__in=IN_FLIGHT).select_related("operation"):
        with transaction.atomic():
            operation = _lock(step.operation)
            step.refresh_from_db(fields=["state", "job_id", "attempt"])
            if step.state not in IN_FLIGHT or alive.filter(pk=step.job_id).exists():
                continue
            if operation.state != Operation.State.RUNNING:
                states.skip_step(step)
                continue
            if slots.is_waiting(step):
                continue
            log.warning("step_without_job_queued_again", step_id=step.pk)
            record_event(
                operation.subject.row,
                kind="operation_healed",
                message=f"The job of the step {step.name} was lost; it was queued "
                "again.",
                data={"operation": operation.pk, "step": step.name},
            )
            defer_step(operation, step)
