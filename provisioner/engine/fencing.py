"""Fencing: whether an attempt at a step, or a job, is still the current one.

The database decides. An attempt that was superseded, or whose operation has ended, may
not change anything; nor may a job that was taken from its worker. Permission lasts a
second from the request, by a clock that also runs while the process or its machine is
stopped. A job taken from a worker is given to another one only after that second.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import QuerySet
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job

from provisioner.engine import states
from provisioner.engine.models import Step
from provisioner.lib.databases import require_no_transaction
from provisioner.lib.refusals import StepCutShort

LEAVE_SECONDS = 1.0
ASKED_AT_MOST = 10
# As states.under_way, with the job. It is asked before each change: the ORM takes
# longer to put it together than the database to answer (benchmarks/queued_requests.py).
_IS_UNDER_WAY = """
    SELECT 1 FROM engine_step AS step
    JOIN engine_operation AS operation ON operation.id = step.operation_id
    WHERE step.id = %s AND step.attempt = %s AND step.state = %s
        AND operation.state <> ALL(%s)
        AND EXISTS (SELECT 1 FROM procrastinate_jobs
            WHERE id = %s AND status = 'doing' AND worker_id = %s)
"""


class AnswersLate(OperationalError):
    """The database answers too slowly for its permission to be used."""


def leave_seconds() -> float:
    """Return how long permission lasts: well below the silence that ends a worker.

    A job taken from a worker is given to another one only after this time.
    """
    stalled: float = settings.WORKER_STALLED_SECONDS
    return min(LEAVE_SECONDS, stalled / 4)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


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
        is asked again.

        Raises: StepCutShort if another attempt has taken over; OperationalError if the
        database does not answer in time; RuntimeError within a transaction.
        """
        require_no_transaction()
        for _ in range(ASKED_AT_MOST):
            asked_at = _now()
            if asked_at < self._until:
                return
            if not self._is_given():
                raise StepCutShort
            self._until = asked_at + leave_seconds()
            if _now() < self._until:
                return
        raise AnswersLate

    def _is_given(self) -> bool:
        """Return whether the database permits it."""
        return self._jobs().exists()

    def _jobs(self) -> QuerySet[ProcrastinateJob]:
        jobs = ProcrastinateJob.objects.filter(pk=self._job.id, status="doing")
        return jobs.filter(worker_id=self._job.worker_id)


class AttemptLeave(JobLeave):
    """Permission for one attempt at a step, made in a job."""

    def __init__(self, step: Step, *, job: Job) -> None:
        super().__init__(job)
        self._step_id, self._attempt = step.pk, step.attempt

    def _is_given(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                _IS_UNDER_WAY,
                [
                    *(self._step_id, self._attempt, Step.State.RUNNING),
                    list(states.ENDED_EARLY),
                    *(self._job.id, self._job.worker_id),
                ],
            )
            return cursor.fetchone() is not None
