"""Retries of steps after transient failures, and the pauses between them."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.utils import timezone
from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from provisioner.gateways.errors import TransientGatewayError
from provisioner.lib.databases import DATABASE_WENT_AWAY

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 60.0
DOUBLED_AT_MOST = 7


def wait_before(attempts: int) -> float:
    """Return the pause in seconds after so many attempts: 0.5, 1, 2 … 60."""
    doubled = FIRST_RETRY_SECONDS * 2.0 ** min(attempts, DOUBLED_AT_MOST)
    return min(doubled, LONGEST_RETRY_SECONDS)


def attempts_of(job: Job) -> int:
    """Return how often a job's step was tried, including earlier jobs."""
    tried = job.task_kwargs.get("tried", 0)
    assert isinstance(tried, int)
    return job.attempts + tried


class TransientRetry(BaseRetryStrategy):
    """Retry after a transient failure, until the pauses add up to the setting.

    The loss of the database is such a failure. STEP_GIVE_UP_SECONDS 1800 means some 36
    attempts.
    """

    def get_retry_decision(
        self, *, exception: BaseException, job: Job
    ) -> RetryDecision | None:
        pause = self.pause_after(exception, job=job)
        return None if pause is None else RetryDecision(retry_at=timezone.now() + pause)

    def pause_after(self, exception: BaseException, *, job: Job) -> dt.timedelta | None:
        """Return how long to wait before the next attempt; None if there is none."""
        if not isinstance(exception, (TransientGatewayError, *DATABASE_WENT_AWAY)):
            return None
        attempts = attempts_of(job)
        waited = sum(wait_before(attempt) for attempt in range(attempts + 1))
        if waited > settings.STEP_GIVE_UP_SECONDS:
            return None
        return dt.timedelta(seconds=wait_before(attempts))


RETRY = TransientRetry()
