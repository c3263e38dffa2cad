"""Whether an attempt at a step is still the one that counts.

The database decides: an attempt that another has followed, or whose operation was
ended, may change nothing any more. Who was given leave may act on it for a second, by a
clock that goes on while a process, or its machine, is stopped.
"""

from __future__ import annotations

import time

from django.conf import settings

from provisioner.workspaces import states
from provisioner.workspaces.errors import StepCutShort
from provisioner.workspaces.models import Step

LEAVE_SECONDS = 1.0


class AttemptLeave:
    """Leave for one attempt at one step; call it before each act."""

    def __init__(self, step: Step) -> None:
        self._step_id, self._attempt = step.pk, step.attempt
        # Well before a silent worker's steps are given to another.
        self._seconds = min(LEAVE_SECONDS, settings.WORKER_STALLED_SECONDS / 4)
        self._until = 0.0

    def __call__(self) -> None:
        """Go on, or do not.

        Raises: StepCutShort where the attempt does not count any more; OperationalError
        where the database does not say.
        """
        asked_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        if asked_at < self._until:
            return
        if not states.counts(self._step_id, attempt=self._attempt):
            raise StepCutShort
        # From when it was asked: the answer may have taken its time.
        self._until = asked_at + self._seconds
