"""Steps that are queued at a Perforce server, as a worker would have queued them."""

from __future__ import annotations

from django.db import connection, transaction

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine import dispatch
from provisioner.engine.models import Operation, Step
from provisioner.engine.worker_pools import Pool
from provisioner.engine.workers import tell_queues
from provisioner.sites.models import PerforceServer
from tests.support.requests import workspace_create


def limit(template: Template, turns: int) -> None:
    PerforceServer.objects.filter(pk=template.site.perforce_server_id).update(
        flush_limit=turns
    )


def ask_to_flush(by: User, template: Template, *, key: str) -> Step:
    """Request a workspace, and run it up to its flush."""
    workspace = workspace_create(by=by, template=template, request_key=key)
    operation = workspace.operations.get()
    return queue(operation, "flush")


def queue(operation: Operation, name: str) -> Step:
    step = operation.steps.get(name=name)
    with transaction.atomic():
        dispatch.defer_step(operation, step)
    return step


def worker_that_serves_everything() -> None:
    """Register a worker that was heard from just now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        [worker_id] = cursor.fetchone()
    tell_queues(worker_id, pool=Pool(queues=None, slots=1))
