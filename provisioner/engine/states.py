"""The one writer of state: transitions are data, each move is a filtered UPDATE.

A move that the table does not allow, or that lost a race, raises StateChanged and
changes nothing. Each move of a workspace or a template writes its event in the same
transaction, and logs it once that is committed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import TextChoices
from procrastinate.jobs import Job

from provisioner.audit_log.actions import record_event as record_event
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.lib import clocks
from provisioner.lib.prepared import planned_cursor
from provisioner.lib.refusals import StateChanged, StepCutShort

log = structlog.get_logger(__name__)
AnyState = TypeVar("AnyState", bound=TextChoices)

S = Step.State


STEP_TRANSITIONS: dict[Step.State, tuple[Step.State, ...]] = {
    S.WAITING: (S.QUEUED, S.RUNNING, S.SKIPPED),
    S.QUEUED: (S.RUNNING, S.QUEUED, S.SKIPPED),
    S.RUNNING: (S.RUNNING, S.RETRYING, S.DONE, S.FAILED, S.QUEUED, S.SKIPPED),
    S.RETRYING: (S.RUNNING, S.QUEUED, S.SKIPPED),
    S.FAILED: (),
    S.DONE: (),
    S.SKIPPED: (),
}


IN_FLIGHT = (S.QUEUED, S.RUNNING, S.RETRYING)
ENDED_EARLY = (
    Operation.State.CANCELED,
    Operation.State.FAILED,
    Operation.State.REFUSED,
)


def sources_of(
    table: Mapping[AnyState, tuple[AnyState, ...]], *, to: AnyState
) -> list[AnyState]:
    """Return the states from which the table allows a move to this one."""
    return [source for source, targets in table.items() if to in targets]


def end_operation(
    operation: Operation,
    to: Operation.State,
    *,
    code: str = "",
    message: str = "",
    findings: dict[str, Any] | None = None,
) -> bool:
    """End a running operation; return whether this call was the one that ended it."""
    fields: dict[str, Any] = {
        "state": to,
        "status_code": code,
        "status_message": message,
        "ended_at": clocks.database_now(),
    }
    if findings is not None:
        fields["findings"] = findings
    return bool(
        Operation.objects.filter(pk=operation.pk, state=Operation.State.RUNNING).update(
            **fields
        )
    )


# What each step asks several times is not put together by the ORM, which takes longer
# than PostgreSQL takes to answer (benchmarks/queued_requests.py).
_LOCK_OPERATION = """
    WITH locked AS MATERIALIZED (
        SELECT state FROM engine_operation WHERE id = %s FOR UPDATE
    )
    SELECT state, clock_timestamp() FROM locked
"""
# The step, unless its attempt is no longer current or needed.
_HOLD = """
    SELECT 1 FROM engine_step AS step
    JOIN engine_operation AS operation ON operation.id = step.operation_id
    WHERE step.id = %s AND step.attempt = %s AND step.state = %s
        AND operation.state <> ALL(%s)
    FOR NO KEY UPDATE OF step
"""
# One statement is a transaction, whose commit is not waited for.
_RECORD = """
    UPDATE engine_step SET {column} = %s
    FROM engine_operation AS operation
    WHERE engine_step.id = %s AND engine_step.attempt = %s AND engine_step.state = %s
        AND operation.id = engine_step.operation_id AND operation.state <> ALL(%s)
        AND set_config('synchronous_commit', 'off', true) = 'off'
"""


def lock_operation(operation: Operation) -> Operation:
    """Lock an operation and reload its state, without its related rows.

    Within `clocks.one_moment`, the moment begins when it is locked.
    """
    with planned_cursor() as cursor:
        cursor.execute(_LOCK_OPERATION, [operation.pk])
        operation.state, now = cursor.fetchone()
    clocks.noted(now)
    return operation


# Of a worker and so many seconds: whether it is heard.
IS_HEARD = """
    EXISTS (SELECT 1 FROM procrastinate_workers
        WHERE id = %s
            AND last_heartbeat >= statement_timestamp() - %s * interval '1 second')
"""
# Of a job and a worker: whether that one still has it.
HAS_JOB = """
    EXISTS (SELECT 1 FROM procrastinate_jobs
        WHERE id = %s AND worker_id = %s AND status = 'doing')
"""
# What fencing.py asks of an attempt that has begun.
_HAS_LEAVE = f"""
    {IS_HEARD} AND {HAS_JOB}
    AND EXISTS (SELECT 1 FROM engine_operation AS operation
        WHERE operation.id = engine_step.operation_id AND operation.state <> ALL(%s))
"""  # noqa: S608 - ours


def _mine(step: Step) -> list[Any]:
    return [step.pk, step.attempt, S.RUNNING, list(ENDED_EARLY)]


@contextmanager
def holding(step: Step) -> Iterator[None]:
    """Write rows of a step's subject in one transaction with its attempt.

    Until they are written, no other attempt starts and this one does not end.

    Raises: StepCutShort if this attempt is not the current one.
    """
    with transaction.atomic():
        with planned_cursor() as cursor:
            cursor.execute(_HOLD, _mine(step))
            if cursor.fetchone() is None:
                raise StepCutShort
        yield


def note_findings(step: Step, findings: dict[str, Any]) -> None:
    """Record what a running step found, for its operation's page.

    Raises: StepCutShort if another attempt has begun.
    """
    with holding(step):
        Operation.objects.filter(pk=step.operation_id).update(findings=findings)


def _move_step(
    step: Step, to: Step.State, *, leave_of: Job | None = None, **fields: Any
) -> bool:
    """Move a step, unless another attempt has begun.

    Return whether a job, if one is given, may act.
    """
    asks: list[Any] = []
    if leave_of is not None:
        worker, within = leave_of.worker_id, settings.WORKER_STALLED_SECONDS
        asks = [worker, within, leave_of.id, worker, list(ENDED_EARLY)]
    columns: dict[str, Any] = {"state": to, **fields}
    where: list[Any] = [step.pk, step.attempt, sources_of(STEP_TRANSITIONS, to=to)]
    with planned_cursor() as cursor:
        cursor.execute(
            f"UPDATE engine_step SET {' = %s, '.join(columns)} = %s "  # noqa: S608
            "WHERE id = %s AND attempt = %s AND state = ANY(%s) "
            f"RETURNING {_HAS_LEAVE if asks else 'FALSE'}",
            [*(_stored(name, value) for name, value in columns.items()), *where, *asks],
        )
        row = cursor.fetchone()
        if row is None:
            raise StateChanged
    for field, value in columns.items():
        setattr(step, field, value)
    return bool(row[0])


def _stored(name: str, value: Any) -> Any:
    """Return a value of a step's field as the database stores it."""
    field: Any = Step._meta.get_field(name)
    return field.get_db_prep_save(value, connection)


def queue_step(step: Step, *, job_id: int | None) -> None:
    """Record the job that will run the step; None: it waits for a slot first.

    Waiting for a slot and for a worker count as one wait.
    """
    waits_already = step.state == S.QUEUED
    queued_at = step.queued_at if waits_already else clocks.database_now()
    _move_step(step, S.QUEUED, job_id=job_id, queued_at=queued_at, ended_at=None)


def start_step(
    step: Step, *, job_id: int | None = None, leave_of: Job | None = None
) -> None:
    """Begin an attempt; with `job_id`, in a job that was not queued for this step.

    Such a step did not wait, unless it was queued for a slot before. With `leave_of`
    the step notes whether that job may act, so that its first act need not ask again.
    """
    now, asked_at = clocks.database_now(), clocks.boottime()
    taken_up: dict[str, Any] = {}
    if job_id is not None:
        taken_up = {"job_id": job_id, "queued_at": step.queued_at or now}
    has_leave = _move_step(
        step,
        S.RUNNING,
        leave_of=leave_of,
        **taken_up,
        attempt=step.attempt + 1,
        started_at=now,
        first_started_at=step.first_started_at or now,
        ended_at=None,
        retry_at=None,
        exit_code=None,
        error_code="",
        error_message="",
    )
    step.leave_asked_at = asked_at if has_leave else None


def finish_step(step: Step, *, result: StepResult | None) -> None:
    """Mark the step as done, with its result."""
    assert result is None or result.step == step.name
    _move_step(
        step,
        S.DONE,
        ended_at=clocks.database_now(),
        result=None if result is None else asdict(result),
        has_rejected=result is not None and result.has_rejected,
    )


def skip_step(step: Step) -> None:
    """Skip a step that is not needed; no attempt is made."""
    _move_step(step, S.SKIPPED, ended_at=clocks.database_now())


def retry_step_later(
    step: Step, *, code: str, message: str, retry_at: dt.datetime
) -> None:
    """Record why an attempt failed, and when the next one starts."""
    _move_step(
        step, S.RETRYING, error_code=code, error_message=message, retry_at=retry_at
    )


def fail_step(step: Step, *, code: str, message: str) -> None:
    """Mark the step as failed."""
    _move_step(
        step,
        S.FAILED,
        ended_at=clocks.database_now(),
        error_code=code[:60],
        error_message=message,
    )


def cancel_operation(operation: Operation, *, message: str) -> None:
    """End a running operation: no further step starts, and a running one stops."""
    end_operation(operation, Operation.State.CANCELED, code="canceled", message=message)
    skip_waiting_steps(operation)


def skip_waiting_steps(operation: Operation) -> None:
    """Skip the steps that an ended operation will not start."""
    operation.steps.filter(state__in=(S.WAITING, S.QUEUED, S.RETRYING)).update(
        state=S.SKIPPED, ended_at=clocks.database_now()
    )


def record_progress(step: Step, progress: dict[str, Any]) -> None:
    """Save a running step's progress. Losing the latest in a crash does no harm.

    Raises: StepCutShort if this attempt is no longer current.
    """
    _record(step, "progress", progress)


def record_flush_place(step: Step, place: dict[str, Any]) -> None:
    """Save how far a flush came, for the next attempt.

    If the latest is lost, its directories are flushed again. Raises: StepCutShort.
    """
    _record(step, "flush_place", place)


def _record(step: Step, column: str, value: dict[str, Any]) -> None:
    with planned_cursor() as cursor:
        cursor.execute(
            _RECORD.format(column=column), [_stored(column, value), *_mine(step)]
        )
        if not cursor.rowcount:
            raise StepCutShort
    setattr(step, column, value)


def remember_ontap_job(step: Step, ontap_job_uuid: str) -> None:
    """Save an ONTAP job's id on the step, before waiting for the job.

    Raises: StepCutShort if another attempt has begun.
    """
    with planned_cursor() as cursor:
        cursor.execute(
            "UPDATE engine_step SET ontap_job_uuid = %s WHERE id = %s AND attempt = %s",
            [ontap_job_uuid, step.pk, step.attempt],
        )
        if not cursor.rowcount:
            raise StepCutShort
    step.ontap_job_uuid = ontap_job_uuid


def note_exit_code(step: Step, exit_code: int) -> None:
    """Record how this attempt's command ended, for people."""
    Step.objects.filter(pk=step.pk, attempt=step.attempt).update(exit_code=exit_code)
    step.exit_code = exit_code


def settled_names(steps: Iterable[Step]) -> set[str]:
    """Return the names of steps that later steps need not wait for."""
    return {step.name for step in steps if step.state in (S.DONE, S.SKIPPED)}
