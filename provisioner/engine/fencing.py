"""Whether an attempt at a step, or a job, is still the one that counts.

The database decides: an attempt that another has followed, or whose operation was
ended, may change nothing any more, nor may a job that another worker was given. Who was
given leave may act on it for a second, by a clock that goes on while a process, or its
machine, is stopped.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from django.conf import settings
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job

from provisioner.engine import states
from provisioner.engine.models import Step
from provisioner.lib.refusals import StepCutShort

LEAVE_SECONDS = 1.0


class _Leave(ABC):
    """Leave that the database gives for a while; call it before each act."""

    def __init__(self) -> None:
        # Well before what a silent worker had is given to another.
        self._seconds = min(LEAVE_SECONDS, settings.WORKER_STALLED_SECONDS / 4)
        self._until = 0.0
        # Helpers that hear nothing for so long end before a take-over.
        self.silent_seconds = settings.WORKER_STALLED_SECONDS / 2

    def __call__(self) -> None:
        """Go on, or do not.

        Raises: StepCutShort where another has gone on with it; OperationalError where
        the database does not say.
        """
        asked_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        if asked_at < self._until:
            return
        if not self._is_given():
            raise StepCutShort
        # From when it was asked: the answer may have taken its time.
        self._until = asked_at + self._seconds

    @abstractmethod
    def _is_given(self) -> bool:
        """Ask the database."""


class AttemptLeave(_Leave):
    """Leave for one attempt at one step."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self._step_id, self._attempt = step.pk, step.attempt

    def _is_given(self) -> bool:
        return states.counts(self._step_id, attempt=self._attempt)


class JobLeave(_Leave):
    """Leave for a job, such as a sweep or a repair, while it is with its worker."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def _is_given(self) -> bool:
        jobs = ProcrastinateJob.objects.filter(pk=self._job.id, status="doing")
        return jobs.filter(worker_id=self._job.worker_id).exists()
