"""Request what administrators ask of Perforce servers: ends, mails and readings."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.insight.models import (
    AdviceRule,
    OrphanRule,
    Process,
    ProcessEnding,
    ProgramMail,
    ProgramRelease,
)
from provisioner.insight.orphans import orphans_of, rule_of
from provisioner.insight.programs import LONGEST_NAME, RELEASE
from provisioner.insight.queries import servers_with_configurations
from provisioner.insight.refusals import MailsNotSent, ProcessOfTheServer
from provisioner.insight.releases import (
    MAILS_AT_ONCE,
    evidence_of,
    people_to_ask,
)
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.releases import is_older
from provisioner.sites.models import PerforceServer

# Registered where it is done; a name keeps the action below it.
END_PROCESS = "end_process"
SEND_PROGRAM_MAIL = "send_program_mail"
READ_CONFIGURATION = "read_server_configuration"
LONGEST_ARGUMENTS = 500
MOST_HOURS = 10_000
MOST_DAYS = 3_650
MOST_COUNTED = 2_000_000_000


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


def advice_rule_save(
    *, by: User, server: PerforceServer, **settings: Any
) -> AdviceRule:
    """Change when clients and protections of a server get advice.

    `settings` are the columns of AdviceRule; those left out stay.

    Raises: NotAllowed, InvalidRequest (numbers).
    """
    permissions.require(permissions.can_administer(by))
    for name, number in settings.items():
        most = MOST_DAYS if name == "unused_days" else MOST_COUNTED
        if not 1 <= number <= most:
            raise InvalidRequest.at(name, f"Choose 1 to {most:,}.")
    with transaction.atomic():
        AdviceRule.objects.get_or_create(server=server)
        rule = AdviceRule.objects.select_for_update().get(server=server)
        before = {name: getattr(rule, name) for name in settings}
        if changes := changes_between(before, settings):
            AdviceRule.objects.filter(pk=rule.pk).update(**settings)
            record_event(
                server,
                kind="advice_rule_changed",
                message="Rule for advice about clients and protections changed.",
                actor=by,
                data=changes,
            )
    return AdviceRule.objects.select_related("server").get(server=server)


def orphans_end(
    *,
    by: User,
    server: PerforceServer,
    process_ids: Collection[int] | None = None,
    at_most: int | None = None,
    not_again_for: dt.timedelta = dt.timedelta(0),
) -> list[ProcessEnding]:
    """Request the end of a server's orphans, oldest first.

    Of those with these ids, if given. Left alone is what is no longer an orphan, what
    is about to be ended, and what was requested in vain a short while ago.

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


def program_release_save(
    *,
    by: User,
    server: PerforceServer,
    program: str,
    minimum: str = "",
    recommended: str = "",
) -> None:
    """Say which releases of a program a server's users should have; "" for neither.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    program = program.strip()
    if not program or len(program) > LONGEST_NAME or not program.isprintable():
        raise InvalidRequest.at("program", "Name a program, such as p4 or P4V.")
    for field, release in (("minimum", minimum), ("recommended", recommended)):
        if release and not re.fullmatch(RELEASE, release):
            raise InvalidRequest.at(field, "Write a release as 2024.1.")
    if is_older(recommended, minimum):
        raise InvalidRequest.at(
            "recommended", "Recommend the minimum or something newer."
        )
    wanted = {"minimum": minimum, "recommended": recommended}
    rules = ProgramRelease.objects.filter(server=server, program=program)
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        before = rules.values("minimum", "recommended").first() or dict.fromkeys(
            wanted, ""
        )
        changes = changes_between(before, wanted)
        if not changes:
            return
        if minimum or recommended:
            ProgramRelease.objects.update_or_create(
                server=server, program=program, defaults=wanted
            )
        else:
            rules.delete()
        record_event(
            server,
            kind="program_release_changed",
            message=f"Releases of {program} changed.",
            actor=by,
            data=changes,
        )


def program_mails_send(
    *, by: User, server: PerforceServer, users: Collection[str] | None = None
) -> list[ProgramMail]:
    """Ask people with old programs for an update, by one mail each.

    Of those with these names, if given, and 200 at a time. Nobody gets one who had one
    within 30 days, or who no longer has an old program.

    Raises: NotAllowed, MailsNotSent.
    """
    permissions.require(permissions.can_administer(by))
    if not mails_are_sent():
        raise MailsNotSent
    with transaction.atomic():
        PerforceServer.objects.select_for_update(no_key=True).get(pk=server.pk)
        people = [
            person
            for person in people_to_ask(server)
            if person.is_due and (users is None or person.user in users)
        ]
        mails = [
            ProgramMail.objects.create(
                server=server,
                p4_user=person.user,
                outdated=evidence_of(person),
                requested_by=by,
            )
            for person in people[:MAILS_AT_ONCE]
        ]
        for mail in mails:
            queue_program_mail(mail.pk)
        if mails:
            record_event(
                server,
                kind="program_mails_requested",
                message=f"Requested {len(mails)} mails about old programs.",
                actor=by,
                data={"users": [mail.p4_user for mail in mails]},
            )
    return mails


def configurations_read(*, by: User) -> int:
    """Request a reading of each server's configuration now; return of how many.

    What is queued already is not queued again.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    servers = list(servers_with_configurations())
    with transaction.atomic():
        record_event(
            None,
            kind="configurations_requested",
            message="Requested a reading of how the Perforce servers are set up.",
            actor=by,
        )
        for server in servers:
            queue_configuration(server)
    return len(servers)


def queue_configuration(server: PerforceServer) -> None:
    """Queue the job that reads a server's configuration, unless it is queued."""
    job = app.configure_task(
        READ_CONFIGURATION,
        queue=PERFORCE,
        queueing_lock=f"read_configuration.{server.pk}",
    )
    defer_once(job, server_id=server.pk)


def queue_program_mail(mail_id: int) -> None:
    """Queue the job that sends a mail."""
    job = app.configure_task(
        SEND_PROGRAM_MAIL,
        queue=PERFORCE,
        queueing_lock=f"{SEND_PROGRAM_MAIL}.{mail_id}",
        lock=SEND_PROGRAM_MAIL,
    )
    defer_once(job, mail_id=mail_id)


def queue_ending(ending: ProcessEnding, *, in_seconds: int = 0) -> None:
    """Queue the job that ends the process."""
    job = app.configure_task(
        END_PROCESS,
        queue=PERFORCE,
        queueing_lock=f"{END_PROCESS}.{ending.pk}",
        schedule_in={"seconds": in_seconds} if in_seconds else None,
    )
    defer_once(job, ending_id=ending.pk)
