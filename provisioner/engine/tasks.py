"""Run the steps of operations, and end them.

A job runs a step and continues with those after it that are for the same queue. It is
deferred in the transaction that marks its step as queued, so neither is ever without
the other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import structlog
from django.db import transaction
from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.jobs import Job

from provisioner.engine import slots, states, subjects, workflow
from provisioner.engine.attempt_spans import attempt_span
from provisioner.engine.dispatch import (
    GO_ON,
    RUN_STEP,
    can_go_on,
    defer_step,
    defer_to_worker,
    go_on,
    leave_operation_to_others,
    leave_to_others,
    release_slot,
    serves,
)
from provisioner.engine.events import attempt_ended
from provisioner.engine.fencing import AttemptLeave
from provisioner.engine.models import Operation, Step
from provisioner.engine.models.operations import StepQuerySet
from provisioner.engine.results import StepResult
from provisioner.engine.retries import RETRY, wait_before
from provisioner.engine.subjects import Failure
from provisioner.gateways import fence
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.meter import Usages, metered
from provisioner.lib import clocks, request_ids
from provisioner.lib.databases import (
    DATABASE_WENT_AWAY,
    close_unusable_connection,
    is_at_rest,
)
from provisioner.lib.prepared import Prepared
from provisioner.lib.refusals import StateChanged, StepCutShort, StepRefused

log = structlog.get_logger(__name__)

STOPS_WITHIN_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 5.0


@app.task(name=RUN_STEP, pass_context=True, retry=RETRY)
def run_step(context: JobContext, *, step_id: int, tried: int = 0) -> None:
    """Run a step, then following ones that this worker can start immediately.

    A step that is settled, or whose operation has ended, is left alone: a job repeated
    after its worker was killed finds it so. `tried` counts the earlier jobs that ran it
    and then had to wait for a slot.
    """
    step = _step_of(context.job, step_id=step_id)
    if step is None:
        return
    if not workflow.knows(step.operation, [step]):
        _leave_to_others(context.job, step)
        return
    # A second query: planning one join over all kinds of subjects takes longer.
    subjects.load_row(step.operation)
    if not _begin(context, step):
        return
    operation = step.operation
    request_ids.follow(operation.request_id, traceparent=operation.traceparent)
    while step is not None:
        ids = step.operation.subject_ids
        named = {f"{kind}_id": pk for kind, pk in ids.items()}
        with (
            structlog.contextvars.bound_contextvars(
                operation_id=step.operation_id, step=step.name, **named
            ),
            attempt_span(step),
        ):
            step = _attempt(context, step)


@app.task(name=GO_ON, retry=RETRY)
def go_on_with_operation(*, operation_id: int) -> None:
    """Queue the next steps of an operation whose worker did not know all of them."""
    with transaction.atomic():
        operation = (
            Operation.objects.select_for_update(of=("self",))
            .select_related("requested_by", "subject")
            .get(pk=operation_id)
        )
        if operation.state != Operation.State.RUNNING:
            return
        if workflow.knows(operation, []):
            subjects.load_rows([operation])
        advance(operation)


def _with_operation() -> StepQuerySet:
    return Step.objects.select_related("operation__requested_by", "operation__subject")


_AT_JOB = Prepared(
    lambda job_id: (
        _with_operation()
        .filter(job_id=job_id, state__in=states.IN_FLIGHT)
        .order_by("operation", "position")[:1]
    ),
    keeps_plan=True,
)
_AT_FIRST = Prepared(
    lambda step_id: _with_operation().filter(pk=step_id).order_by(), keeps_plan=True
)
_OF_OPERATION = Prepared(
    lambda pk: Step.objects.filter(operation=pk).order_by("position"), keeps_plan=True
)
_STATES: Prepared[tuple[int, str, int]] = Prepared(
    lambda pk: (
        Step.objects.filter(operation=pk)
        .order_by("position")
        .values_list("pk", "state", "attempt")
    ),
    keeps_plan=True,
)


def _step_of(job: Job, *, step_id: int) -> Step | None:
    """Return the step that this job runs: the one it was queued for, or a later one.

    Without its subject: only a release that has the step knows what that can be.
    """
    assert job.id is not None
    return _AT_JOB.first(job.id) or _AT_FIRST.first(step_id)


def _begin(context: JobContext, step: Step) -> bool:
    """Start a job's step; return whether there is one to run."""
    try:
        if step.operation.state != Operation.State.RUNNING:
            states.skip_step(step)
            return False
        if step.state in states.IN_FLIGHT and not serves(context, step):
            return _hand_over(context.job, step)
        return _start(context.job, step)
    except StateChanged:
        return False


def _hand_over(job: Job, step: Step) -> bool:
    """Requeue a step for workers of its queue; the worker that had it died."""
    with transaction.atomic():
        operation = states.lock_operation(step.operation)
        if _is_of(job, step, operation):
            defer_to_worker(operation, step)
    return False


def _leave_to_others(job: Job, step: Step) -> None:
    """Requeue a step that only another release has, for workers of that."""
    with transaction.atomic():
        operation = states.lock_operation(step.operation)
        if _is_of(job, step, operation):
            log.warning("step_left_to_others", step_id=step.pk, step=step.name)
            leave_to_others(job, step)


def _is_of(job: Job, step: Step, operation: Operation) -> bool:
    """Return whether a step of a locked operation is still to be run by a job."""
    step.refresh_from_db(fields=["state", "job_id", "attempt"])
    is_running = operation.state == Operation.State.RUNNING
    return is_running and step.state in states.IN_FLIGHT and step.job_id == job.id


def _start(job: Job, step: Step) -> bool:
    """Begin an attempt; if the step may not start yet, queue it for a slot."""
    if not step.perforce_use:
        states.start_step(step, leave_of=job)
        return True
    if step.job_id != job.id:
        return False  # It waits for a slot, or has it with another job.
    with transaction.atomic(), clocks.one_moment():
        if slots.may_start(step):
            states.start_step(step, leave_of=job)
            return True
        states.queue_step(step, job_id=None)
    return False


def _attempt(context: JobContext, step: Step) -> Step | None:
    """Run one attempt; return the next step for this job, if any."""

    def fail(why: Exception, *, code: str, message: str) -> None:
        settle = partial(
            _settle_failure, step, usages, code=code, message=message, why=why
        )
        _settle_when_heard(context, settle)

    usages: Usages = {}
    try:
        with fence.asking(AttemptLeave(step, job=context.job)), metered() as usages:
            result = workflow.perform(step)
    except StepRefused as refusal:
        fail(refusal, code=refusal.code, message=refusal.sentence)
    except GatewayError as error:
        pause = RETRY.pause_after(error, job=context.job)
        if pause is None:
            log.error("step_failed", attempt=step.attempt, **error.log_context())
            code = f"{error.system}_{type(error).__name__}".lower()
            fail(error, code=code, message=error.sentence)
            return None
        log.warning("step_will_be_retried", attempt=step.attempt, **error.log_context())
        with contextlib.suppress(StateChanged), transaction.atomic():
            states.retry_step_later(
                step,
                code=type(error).__name__.lower(),
                message=error.sentence,
                retry_at=clocks.database_now() + pause,
            )
            release_slot(step)
            attempt_ended.send(Step, step=step, usages=usages)
        raise
    except StepCutShort:
        _settle_cut_short(step, usages)
    except DATABASE_WENT_AWAY:
        raise  # The job is retried, and finds the step as it was left.
    except Exception as bug:
        # Ours to fix: settled, so that nobody waits forever; then raised again.
        message = (
            "Something went wrong in Cloneyard itself. It is not retried "
            "automatically. An administrator finds the details in the log."
        )
        fail(bug, code="internal_error", message=message)
        raise
    else:
        return _settle_when_heard(
            context, partial(_settle_success, context, step, usages, result)
        )
    return None


def _settle_when_heard(
    context: JobContext, settle: Callable[[], Step | None]
) -> Step | None:
    """Record how a step ended, however long the database is away: builds take hours.

    A worker that is told to stop gives up a minute later. If another attempt has begun,
    that one counts.
    """
    is_stopping = context.additional_context.get("is_stopping", lambda: False)
    gives_up_at: float | None = None
    for tries in count():
        # The first try is spared a question where nothing is known against it.
        if tries or not is_at_rest():
            close_unusable_connection()
        try:
            return settle()
        except DATABASE_WENT_AWAY as error:
            if gives_up_at is None and is_stopping():
                gives_up_at = time.monotonic() + STOPS_WITHIN_SECONDS
            is_late = gives_up_at is not None and time.monotonic() > gives_up_at
            if is_late or context.should_abort():
                raise
            if not tries:
                log.warning("step_done_but_not_kept_yet", error=str(error))
            time.sleep(min(wait_before(tries), LONGEST_PAUSE_SECONDS))
    raise AssertionError("a count has no end")


def _read_subject_anew(operation: Operation) -> None:
    """Reload an operation's subject, keeping its loaded site."""
    subject, site = operation.subject.row, operation.site
    subject.refresh_from_db()
    subject.site = site


def _settle_success(
    context: JobContext, step: Step, usages: Usages, result: StepResult | None
) -> Step | None:
    with transaction.atomic(), clocks.one_moment():
        operation = states.lock_operation(step.operation)
        try:
            states.finish_step(step, result=result)
        except StateChanged:
            return None
        for write in step.when_done:
            write()
        following = None
        if operation.state == Operation.State.RUNNING:
            following = advance(operation, context=context)
        release_slot(step)
        attempt_ended.send(Step, step=step, usages=usages)
    return following


def _settle_cut_short(step: Step, usages: Usages) -> None:
    """Skip a step of an ended operation. If its job was lost, another one continues."""
    with contextlib.suppress(StateChanged), transaction.atomic():
        if states.lock_operation(step.operation).state != Operation.State.RUNNING:
            states.skip_step(step)
            release_slot(step)
            attempt_ended.send(Step, step=step, usages=usages)


def _settle_failure(
    step: Step, usages: Usages, *, code: str, message: str, why: BaseException
) -> None:
    """End the step and its operation, and record the reason on the subject."""
    with transaction.atomic():
        operation = states.lock_operation(step.operation)
        try:
            states.fail_step(step, code=code, message=message)
        except StateChanged:
            return
        end_badly(operation, code=code, message=message, why=why)
        release_slot(step)
        attempt_ended.send(Step, step=step, usages=usages)


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


def _steps_of(operation: Operation) -> list[Step]:
    """Return the steps of a locked operation as they are.

    Those that this job loaded before are taken if no other job has moved one since.
    """
    kept: dict[str, Any] = getattr(operation, "_prefetched_objects_cache", {})
    if "steps" in kept:
        steps = list(kept["steps"])
        known = [(step.pk, str(step.state), step.attempt) for step in steps]
        if known == _STATES.rows(operation.pk):
            return steps
    return _OF_OPERATION.rows(operation.pk)


def _keep_steps(operation: Operation, steps: list[Step]) -> None:
    """Let the next step find the results of those before it without a query."""
    loaded: Any = operation.steps.all()
    loaded._result_cache = steps
    operation._prefetched_objects_cache = {"steps": loaded}  # type: ignore[attr-defined]


def advance(operation: Operation, *, context: JobContext | None = None) -> Step | None:
    """Queue the steps that may start now, or end the operation if none is left.

    Call it inside the transaction that settled a step, with the operation locked. The
    first one that the job of `context` can continue with is begun and returned instead
    of queued: no other worker would be faster. Where a step is of another release, that
    decides what comes next.
    """
    steps = _steps_of(operation)
    if not workflow.knows(operation, steps):
        log.warning("operation_left_to_others", operation_id=operation.pk)
        leave_operation_to_others(operation)
        return None
    for step in steps:
        step.operation = operation  # it is at hand, with its site
    _keep_steps(operation, steps)
    following: Step | None = None
    for step in workflow.ready_to_start(operation, steps):
        if context and not following and can_go_on(context, step):
            if go_on(context.job, step):
                following = step
        else:
            defer_step(operation, step)
    if all(step.state in (Step.State.DONE, Step.State.SKIPPED) for step in steps):
        states.end_operation(operation, Operation.State.SUCCEEDED)
        _read_subject_anew(operation)
        workflow.workflow_of(operation).on_success(operation)
    return following
