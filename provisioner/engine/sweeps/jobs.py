"""Reassign what a crash left behind: slots, jobs of silent workers, lost jobs."""

from __future__ import annotations

import contextlib
import datetime as dt

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status

from provisioner.audit_log.actions import record_event
from provisioner.engine import slots, states, workflow
from provisioner.engine.dispatch import RUN_STEP, defer_step, give_slots
from provisioner.engine.failovers import began_lately
from provisioner.engine.fencing import leave_seconds
from provisioner.engine.job_manager import finish_of_its_worker, retry_of_its_worker
from provisioner.engine.models import Operation, Step
from provisioner.engine.retries import LONGEST_RETRY_SECONDS
from provisioner.engine.states import IN_FLIGHT
from provisioner.lib import clocks

log = structlog.get_logger(__name__)

HEARD_IN_THE_FUTURE = """
    UPDATE procrastinate_workers SET last_heartbeat = now()
    WHERE last_heartbeat > now() + %(seconds)s * interval '1 second'
"""
PUT_OFF_TOO_FAR = """
    UPDATE procrastinate_jobs SET scheduled_at = now()
    WHERE status = 'todo' AND task_name = %(task)s
        AND scheduled_at > now() + %(seconds)s * interval '1 second'
"""


@app.periodic(cron="* * * * * */5")
@app.task(name="sweep_slots", queue="sweeps", queueing_lock="sweep_slots")
def sweep_slots(timestamp: int) -> None:
    """Assign slots that a crash or the end of an operation left unused."""
    for server_id in slots.servers_waited_for():
        with transaction.atomic():
            give_slots(server_id)


@app.periodic(cron="* * * * * */5")
@app.task(name="sweep_jobs", queue="sweeps", queueing_lock="sweep_jobs")
async def sweep_jobs(timestamp: int) -> None:
    """Give the jobs of silent workers to others.

    After an outage or a failover of the database all workers are silent, so they get
    time to report.

    Source: procrastinate docs, how-to "retry stalled jobs".
    """
    await _forget_the_future()
    if await began_lately(app.job_manager.connector):
        return
    stalled = await app.job_manager.get_stalled_jobs(
        seconds_since_heartbeat=settings.WORKER_STALLED_SECONDS
    )
    for job in stalled:
        await _give_to_another(job)


async def _forget_the_future() -> None:
    """Repair rows written while the database's own clock was ahead.

    Otherwise a worker that died then would count as alive until that time comes, and a
    step that paused would wait until then.
    """
    update = app.job_manager.connector.execute_query_async
    await update(query=HEARD_IN_THE_FUTURE, seconds=settings.WORKER_STALLED_SECONDS)
    await update(
        query=PUT_OFF_TOO_FAR, task=RUN_STEP, seconds=2 * LONGEST_RETRY_SECONDS
    )


async def _give_to_another(job: Job) -> None:
    """Queue a job again, or drop it if an equal one waits.

    It starts after a pause, as its worker may have got permission to act a moment ago.
    """
    leave = dt.timedelta(seconds=leave_seconds())
    retry_at = await sync_to_async(clocks.database_now)() + leave
    connector = app.job_manager.connector
    try:
        is_given = await retry_of_its_worker(
            connector, job_id=job.id, worker_id=job.worker_id, retry_at=retry_at
        )
    except UniqueViolation:
        log.warning("stalled_job_dropped", job_id=job.id, task=job.task_name)
        with contextlib.suppress(ConnectorException):
            await finish_of_its_worker(
                connector,
                job_id=job.id,
                worker_id=job.worker_id,
                status=Status.FAILED,
                delete_job=True,
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
    """Requeue each unsettled step whose job is lost, so that none waits forever.

    Steps of ended operations are settled too: a retirement waits for them.
    """
    alive = ProcrastinateJob.objects.filter(status__in=("todo", "doing"))
    in_line = slots.WAITS & Q(operation__state=Operation.State.RUNNING)
    # In a burst a thousand are in flight: only those are locked that may be lost.
    lost = Step.objects.filter(
        ~Exists(alive.filter(pk=OuterRef("job_id"))), state__in=IN_FLIGHT
    ).exclude(in_line)
    for step in lost.select_related("operation"):
        with transaction.atomic():
            operation = states.lock_operation(step.operation)
            step.refresh_from_db(fields=["state", "job_id", "attempt"])
            if step.state not in IN_FLIGHT or alive.filter(pk=step.job_id).exists():
                continue
            if operation.state != Operation.State.RUNNING:
                states.skip_step(step)
                continue
            if slots.is_waiting(step) or not workflow.knows(operation, [step]):
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
