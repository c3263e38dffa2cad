"""Periodic jobs are queued once for each period, also by a worker that was held up."""

from __future__ import annotations

import asyncio

import pytest
from procrastinate.jobs import Job

from provisioner.engine.job_manager import LastingJobManager
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import worker_connector

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_period_before_one_that_was_queued_is_not_queued_again(
    jobs_emptied: None,
) -> None:
    """As by a worker that waited for the database longer than another."""

    async def queued(*timestamps: int) -> list[bool]:
        connector = worker_connector()
        await connector.open_async()
        try:
            manager = LastingJobManager(connector, pool=Pool(queues=None, slots=1))
            return [await defer(manager, timestamp) for timestamp in timestamps]
        finally:
            await connector.close_async()

    async def defer(manager: LastingJobManager, timestamp: int) -> bool:
        job = Job(
            id=None,
            queue="sweeps",
            lock=None,
            queueing_lock=None,
            task_name="sweep_jobs",
            task_kwargs={"timestamp": timestamp},
        )
        return await manager.defer_periodic_job(job, "", timestamp) is not None

    found = asyncio.run(queued(100, 105, 100, 105, 110))

    assert found == [True, True, False, False, True]
