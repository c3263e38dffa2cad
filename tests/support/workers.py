"""Rows of workers that send heartbeats, without a process."""

from __future__ import annotations

from django.db import connection

from provisioner.engine.models import WorkerQueues
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import tell_queues


def start_worker(host: str, *queues: str) -> None:
    """Enter a worker on a host that serves these queues and was heard just now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        [worker_id] = cursor.fetchone()
    tell_queues(worker_id, pool=Pool(queues=queues, slots=1))
    WorkerQueues.objects.filter(worker_id=worker_id).update(host=host)
