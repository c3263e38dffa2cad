"""Defer jobs in the current transaction, each only once."""

from __future__ import annotations

from django.db import transaction
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import JobDeferrer
from procrastinate.manager import JobManager

# Inside a worker, a task's own `defer` goes by the worker's connections: the job would
# be seen, and maybe be over, before the rows that it is about are committed.
_in_transaction = JobManager(DjangoConnector())


def defer(job: JobDeferrer, **arguments: int | str) -> int:
    """Queue a job in the current transaction, and return its id."""
    here = JobDeferrer(job_manager=_in_transaction, job=job.job)
    return here.defer(**arguments)


def defer_once(job: JobDeferrer, **arguments: int | str) -> bool:
    """Queue a job unless one with its queueing lock waits already; return whether it
    was queued. A taken lock does not abort the transaction.
    """
    try:
        with transaction.atomic():
            defer(job, **arguments)
    except AlreadyEnqueued:
        return False
    return True


def cancel(job_id: int) -> bool:
    """Cancel a job that waits; return whether it waited still."""
    return _in_transaction.cancel_job_by_id(job_id)
