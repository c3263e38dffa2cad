"""Dispatch of steps to workers: queue, order and slots."""

from __future__ import annotations

import datetime as dt

from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.jobs import Job

from provisioner.engine import slots, states, subjects, workflow
from provisioner.engine.deferring import defer
from provisioner.engine.models import Operation, Step
from provisioner.engine.retries import attempts_of
from provisioner.engine.worker_pools import SWEEPS, Pool
from provisioner.lib import clocks
from provisioner.lib.prepared import planned_cursor

RUN_STEP = "run_step"
GO_ON = "go_on_with_operation"

PEOPLE_FIRST = 10
MACHINES_LATER = 0
BEHIND_REQUESTS = -5
# Of these, what goes on comes before what has not begun: requests are served one after
# the other, and not all of them at the end.
ALREADY_BEGUN = 1
# A worker of another release takes a step meanwhile, or one of ours meets it again.
LEFT_FOR = dt.timedelta(seconds=1)

# Asked after each step: the ORM takes longer to put it together than to answer.
_GOES_BEFORE = """
    SELECT 1 FROM procrastinate_jobs
    WHERE status = 'todo' AND task_name = %s AND priority > %s
        AND (scheduled_at IS NULL OR scheduled_at <= statement_timestamp())
    LIMIT 1
"""


def defer_step(operation: Operation, step: Step) -> None:
    """Queue a step's job in the current transaction, or let it wait for a slot."""
    server_id = step.perforce_server_id
    needs_slot = step.perforce_use in slots.NEEDS_SLOT
    if server_id and (needs_slot or slots.is_paused(server_id)):
        states.queue_step(step, job_id=None)
        give_slots(server_id)
    else:
        defer_to_worker(operation, step)


def defer_to_worker(operation: Operation, step: Step) -> None:
    spec = workflow.spec_of(step)
    task = app.configure_task(
        RUN_STEP,
        queue=spec.queue_for(operation),
        priority=_priority(operation) + (ALREADY_BEGUN if spec.after else 0),
    )
    tried = {"tried": step.attempt} if step.attempt else {}
    states.queue_step(step, job_id=defer(task, step_id=step.pk, **tried))


def leave_to_others(job: Job, step: Step) -> None:
    """Queue a step again for workers of the release that has it.

    Call it inside a transaction with its operation locked.
    """
    task = app.configure_task(
        RUN_STEP,
        queue=job.queue,
        priority=job.priority,
        schedule_at=clocks.database_now() + LEFT_FOR,
    )
    tried = {"tried": step.attempt} if step.attempt else {}
    states.queue_step(step, job_id=defer(task, step_id=step.pk, **tried))


def leave_operation_to_others(operation: Operation) -> None:
    """Let a worker whose release knows all its steps queue the next ones."""
    task = app.configure_task(
        GO_ON,
        queue=SWEEPS,
        priority=_priority(operation),
        schedule_at=clocks.database_now() + LEFT_FOR,
    )
    defer(task, operation_id=operation.pk)


def _priority(operation: Operation) -> int:
    if operation.is_background:
        return BEHIND_REQUESTS
    return MACHINES_LATER if operation.requested_by.is_service else PEOPLE_FIRST


def give_slots(
    server_id: int, *, to: Step | None = None, job: Job | None = None
) -> bool:
    """Queue the steps that now get a slot at a Perforce server.

    If the step `to` gets one, it starts in this job instead: return whether it did.
    Steps that only another release has get theirs from that.
    """
    next_in_line = slots.next_in_line(server_id)
    others = [
        step
        for step in next_in_line
        if (to is None or step.pk != to.pk) and workflow.knows(step.operation, [step])
    ]
    subjects.load_rows(
        step.operation for step in others if workflow.spec_of(step).is_of_a_place
    )
    for step in others:
        defer_to_worker(step.operation, step)
    has_its_slot = to is not None and to.pk in {step.pk for step in next_in_line}
    if has_its_slot and to is not None and job is not None:
        states.start_step(to, job_id=job.id, leave_of=job)
    return has_its_slot


def release_slot(step: Step) -> None:
    """Free the slot of a step that has ended or pauses for a retry.

    Call it last in a transaction, as it locks the server's row.
    """
    if step.perforce_use in slots.NEEDS_SLOT:
        assert step.perforce_server_id is not None
        give_slots(step.perforce_server_id)


def serves(context: JobContext, step: Step) -> bool:
    """Return whether the step may run in the slots of this job."""
    queue = workflow.spec_of(step).queue_for(step.operation)
    pool = context.additional_context.get("pool")
    if isinstance(pool, Pool):
        return pool.serves(queue)
    return context.worker_queues is None or queue in context.worker_queues


def can_go_on(context: JobContext, step: Step) -> bool:
    """Return whether a job may continue with a step without delaying others.

    A retried job has used up part of its retry time, so the next step gets its own job.
    If the step belongs to another queue, jobs with priority wait for one step at most.
    """
    if attempts_of(context.job) or not serves(context, step):
        return False
    queue = workflow.spec_of(step).queue_for(step.operation)
    if context.job.queue == queue or context.job.priority >= PEOPLE_FIRST:
        return True
    with planned_cursor() as cursor:
        cursor.execute(_GOES_BEFORE, [RUN_STEP, context.job.priority + ALREADY_BEGUN])
        return cursor.fetchone() is None


def go_on(job: Job, step: Step) -> bool:
    """Start a step in the previous step's job, unless it has to wait for a slot."""
    server_id = step.perforce_server_id
    if server_id is not None and step.perforce_use in slots.NEEDS_SLOT:
        room = slots.room_for(step)
        if room == slots.Room.FREE:
            states.start_step(step, job_id=job.id, leave_of=job)
            return True
        states.queue_step(step, job_id=None)
        return room == slots.Room.LINE and give_slots(server_id, to=step, job=job)
    if server_id is not None and slots.is_paused(server_id):
        states.queue_step(step, job_id=None)
        return False
    states.start_step(step, job_id=job.id, leave_of=job)
    return True
