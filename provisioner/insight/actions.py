"""Request the end of a process at a Perforce server."""

from __future__ import annotations

from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.insight.models import Process, ProcessEnding
from provisioner.insight.refusals import ProcessOfTheServer

# Registered where it is done; a name keeps the action below it.
END_PROCESS = "end_process"
LONGEST_ARGUMENTS = 500


def process_end(*, by: User, process: Process) -> ProcessEnding:
    """Request the end of a process. A repeated request returns the first one.

    A worker reads the server's processes again first, and ends nothing else that has
    the same number by then.

    Raises: NotAllowed, ProcessOfTheServer.
    """
    permissions.require(permissions.can_administer(by))
    if process.is_of_the_server:
        raise ProcessOfTheServer(command=process.command)
    with transaction.atomic():
        ending, is_new = ProcessEnding.objects.get_or_create(
            server=process.server,
            number=process.number,
            state=ProcessEnding.State.REQUESTED,
            defaults={
                "user": process.user,
                "command": process.command,
                "started_at": process.started_at,
                "requested_by": by,
            },
        )
        if is_new:
            record_event(
                process.server,
                kind="process_end_requested",
                message=f"Requested to end {process}.",
                actor=by,
                data={
                    "program": process.program,
                    "client": process.client,
                    "host": process.host,
                    "arguments": process.arguments[:LONGEST_ARGUMENTS],
                },
            )
        queue_ending(ending)
    return ending


def queue_ending(ending: ProcessEnding, *, in_seconds: int = 0) -> None:
    """Queue the job that ends the process."""
    job = app.configure_task(
        END_PROCESS,
        queue=PERFORCE,
        queueing_lock=f"{END_PROCESS}.{ending.pk}",
        schedule_in={"seconds": in_seconds} if in_seconds else None,
    )
    defer_once(job, ending_id=ending.pk)
