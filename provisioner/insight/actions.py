"""Request the end of processes at a Perforce server, and say which are orphans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.insight.models import OrphanRule, Process, ProcessEnding
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.refusals import ProcessOfTheServer
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.models import PerforceServer

# Registered where it is done; a name keeps the action below it.
END_PROCESS = "end_process"
LONGEST_ARGUMENTS = 500
MOST_HOURS = 10_000


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


def orphan_rule_save(
    *, by: User, server: PerforceServer, **settings: Any
) -> OrphanRule:
    """Change which processes of a server count as orphans, and what becomes of them.

    `settings` are the columns of OrphanRule; those left out stay.

    Raises: NotAllowed, InvalidRequest (hours).
    """
    permissions.require(permissions.can_administer(by))
    for name in ("command_hours", "idle_hours"):
        hours = settings.get(name)
        if hours is not None and not 1 <= hours <= MOST_HOURS:
            raise InvalidRequest.at(
                name, f"Choose 1 to {MOST_HOURS:,} hours, or leave it empty for never."
            )
    with transaction.atomic():
        OrphanRule.objects.get_or_create(server=server)
        rule = OrphanRule.objects.select_for_update().get(server=server)
        before = {name: getattr(rule, name) for name in settings}
        if changes := changes_between(before, settings):
            OrphanRule.objects.filter(pk=rule.pk).update(**settings)
            record_event(
                server,
                kind="orphan_rule_changed",
                message="Rule for orphaned processes changed.",
                actor=by,
                data=changes,
            )
    return OrphanRule.objects.select_related("server").get(server=server)


def orphans_end(
    *,
    by: User,
    server: PerforceServer,
    process_ids: Collection[int] | None = None,
    at_most: int | None = None,
    not_again_for: dt.timedelta = dt.timedelta(0),
) -> list[ProcessEnding]:
    """Request the end of a server's orphans, oldest first.

    Of those with these ids, if given. What is no orphan by now is left alone, and so is
    what is to be ended already, or was requested in vain so lately.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    state = ProcessEnding.State
    since = clocks.database_now() - not_again_for
    asked = ProcessEnding.objects.filter(
        Q(state=state.REQUESTED) | Q(state=state.FAILED, requested_at__gt=since),
        server=server,
    )
    known = set(asked.values_list("number", "user", "command"))
    orphans = [
        process
        for process in orphans_of(rule_of(server))
        if (process.number, process.user, process.command) not in known
        and (process_ids is None or process.pk in process_ids)
    ]
    return [process_end(by=by, process=process) for process in orphans[:at_most]]


def queue_ending(ending: ProcessEnding, *, in_seconds: int = 0) -> None:
    """Queue the job that ends the process."""
    job = app.configure_task(
        END_PROCESS,
        queue=PERFORCE,
        queueing_lock=f"{END_PROCESS}.{ending.pk}",
        schedule_in={"seconds": in_seconds} if in_seconds else None,
    )
    defer_once(job, ending_id=ending.pk)
