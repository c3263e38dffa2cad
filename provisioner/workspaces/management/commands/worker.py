"""Run jobs: `python manage.py worker [--queues storage,perforce,host.munich]`."""

from __future__ import annotations

import argparse
import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from procrastinate.contrib.django import app

from provisioner.gateways.hosts.log_files import close_logs
from provisioner.lib.garbage import spare_what_is_loaded
from provisioner.workspaces.workers import (
    TellingJobManager,
    with_origin,
    worker_connector,
)

SWEEPS = "sweeps"


class Command(BaseCommand):
    help = "Run jobs of the named queues; without --queues, of all."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--queues",
            help="Comma-separated: storage, perforce, host.<site>. Every worker also "
            "sweeps.",
        )
        parser.add_argument(
            "--concurrency", type=int, default=settings.WORKER_CONCURRENCY
        )

    def handle(self, *args: Any, **options: Any) -> None:
        queues = [name for name in (options["queues"] or "").split(",") if name]
        close_logs(settings.LOG_DIR)
        spare_what_is_loaded()
        asyncio.run(
            _work(
                queues=[*queues, SWEEPS] if queues else None,
                concurrency=options["concurrency"],
            )
        )


async def _work(*, queues: list[str] | None, concurrency: int) -> None:
    # Steps are synchronous: each running one holds a thread of this pool.
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(max_workers=concurrency + 2, thread_name_prefix="step")
    )
    with app.replace_connector(worker_connector()) as worker_app:
        worker_app.job_manager = TellingJobManager(worker_app.connector, queues=queues)
        async with worker_app.open_async():
            await worker_app.run_worker_async(
                queues=queues,  # type: ignore[arg-type]  # None: all queues
                concurrency=concurrency,
                fetch_job_polling_interval=1.0,
                update_heartbeat_interval=settings.WORKER_HEARTBEAT_SECONDS,
                stalled_worker_timeout=settings.WORKER_STALLED_SECONDS,
                delete_jobs="successful",
                worker_middleware=[with_origin],
            )
