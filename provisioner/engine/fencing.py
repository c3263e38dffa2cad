"""Fencing: whether an attempt at a step, or a job, is still the current one.

The database decides. An attempt that was superseded, or whose operation has ended, may
not change anything; nor may a job that was taken from its worker. Permission lasts a
second from the request, by a clock that also runs while the process or its machine is
stopped. A job taken from a worker is given to another one only after that second.

A former primary may go on answering questions after a failover. So permission also
takes a heartbeat of the worker: a server that waits for a synchronous standby before a
commit shows nobody a heartbeat that has not arrived there.
"""

from __future__ import annotations

import datetime as dt
import time

from django.conf import settings
from django.db import OperationalError
from django.db.models import Exists, QuerySet
from django.db.models.functions import Now
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from procrastinate.jobs import Job

from provisioner.engine import states
from provisioner.engine.models import Step
from provisioner.lib.clocks import boottime
from provisioner.lib.databases import require_no_transaction
from provisioner.lib.prepared import planned_cursor
from provisioner.lib.refusals import StepCutShort

LEAVE_SECONDS = 1.0
ASKED_AT_MOST = 10
# How long a worker without a heartbeat sleeps before it asks again.
HEARD_AGAIN_SECONDS = 0.2
# As states.holding, with the job, and whether its worker is heard. It is asked before
# each change: the ORM takes longer to put it together than the database to answer
# (benchmarks/queued_requests.py).
_IS_UNDER_WAY = f"""
    SELECT {states.IS_HEARD}
    FROM engine_step AS step
    JOIN engine_operation AS operation ON operation.id = step.operation_id
    WHERE step.id = %s AND step.attempt = %s AND step.state = %s
        AND operation.state <> ALL(%s)
        AND {states.HAS_JOB}
"""  # noqa: S608 - ours


class AnswersLate(OperationalError):
    """The database answers too slowly for its permission to be used."""


class NotHeard(OperationalError):
    """The database has no recent heartbeat of this worker."""


def leave_seconds() -> float:
    """Return how long permission lasts: well below the silence that ends a worker.

    A job taken from a worker is given to another one only after this time.
    """
    stalled: float = settings.WORKER_STALLED_SECONDS
    return min(LEAVE_SECONDS, stalled / 4)


class JobLeave:
    """Permission for a job to act, such as a sweep, as long as its worker holds it.

    The database gives it, for a short time. Ask for it before each act.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._until = 0.0
        # Helpers that hear nothing for so long end before a take-over.
        self.silent_seconds = settings.WORKER_STALLED_SECONDS / 2

    def __call__(self) -> None:
        """Raise unless the caller may act.

        An answer that arrives after its permission expired is ignored, and the database
        is asked again. It is also asked again while a heartbeat is due, as after a
        restart of the database.

        Raises: StepCutShort if another attempt has taken over; OperationalError if the
        database does not answer in time, or hears no heartbeat; RuntimeError within a
        transaction.
        """
        require_no_transaction()
        for _ in range(ASKED_AT_MOST):
            if boottime() < self._until:
                return
            self._until = self._given_at() + leave_seconds()
            if boottime() < self._until:
                return
        raise AnswersLate

    def _given_at(self) -> float:
        """Return when the permission that was granted was requested."""
        gives_up_at = boottime() + settings.WORKER_STALLED_SECONDS
        while True:
            asked_at = boottime()
            is_heard = self._is_heard()
            if is_heard is None:
                raise StepCutShort
            if is_heard:
                return asked_at
            if asked_at > gives_up_at:
                raise NotHeard
            time.sleep(HEARD_AGAIN_SECONDS)

    def _is_heard(self) -> bool | None:
        """Return whether the database hears the worker; None if it gives no leave."""
        return self._jobs().values_list(self._has_heartbeat(), flat=True).first()

    def _jobs(self) -> QuerySet[ProcrastinateJob]:
        jobs = ProcrastinateJob.objects.filter(pk=self._job.id, status="doing")
        return jobs.filter(worker_id=self._job.worker_id)

    def _has_heartbeat(self) -> Exists:
        since = Now() - dt.timedelta(seconds=settings.WORKER_STALLED_SECONDS)
        heard = ProcrastinateWorker.objects.filter(last_heartbeat__gte=since)
        return Exists(heard.filter(pk=self._job.worker_id))


class AttemptLeave(JobLeave):
    """Permission for one attempt at a step, made in a job."""

    def __init__(self, step: Step, *, job: Job) -> None:
        super().__init__(job)
        self._step_id, self._attempt = step.pk, step.attempt
        if step.leave_asked_at is not None:
            self._until = step.leave_asked_at + leave_seconds()

    def _is_heard(self) -> bool | None:
        with planned_cursor() as cursor:
            cursor.execute(
                _IS_UNDER_WAY,
                (
                    self._job.worker_id,
                    settings.WORKER_STALLED_SECONDS,
                    self._step_id,
                    self._attempt,
                    Step.State.RUNNING,
                    list(states.ENDED_EARLY),
                    self._job.id,
                    self._job.worker_id,
                ),
            )
            row = cursor.fetchone()
        return bool(row[0]) if row else None
