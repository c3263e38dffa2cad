"""Queueing what need not wait twice."""

from __future__ import annotations

from django.db import transaction
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import JobDeferrer


def defer_once(job: JobDeferrer, **arguments: int | str) -> bool:
    """Queue a job, unless one with its queueing lock is waiting: that is as good.

    Say whether it was queued. A lock that is taken breaks off no transaction.
    """
    try:
        with transaction.atomic():
            job.defer(**arguments)
    except AlreadyEnqueued:
        return False
    return True
