"""Change what a probe runs, mark moments, and mail reports."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.mails import mails_are_sent, why_no_mail_to
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.insight.refusals import MailsNotSent
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.storable import storable
from provisioner.lib.times import recorded
from provisioner.probes.commands import read_commands
from provisioner.probes.comparing import Report
from provisioner.probes.models import (
    KEPT_FOR,
    LONGEST_LABEL,
    Moment,
    ProbePlan,
    ReportMail,
)
from provisioner.probes.queries import plan_of
from provisioner.sites.models import PerforceServer

# Registered where it is done; a name keeps the action below it.
SEND_REPORT_MAIL = "send_report_mail"
MOST_PEOPLE = 20
LONGEST_USERNAME = 150


def probe_plan_save(*, by: User, server: PerforceServer, **settings: Any) -> ProbePlan:
    """Change the columns `is_on` and `commands` of a plan; those left out stay.

    Raises: NotAllowed, InvalidRequest (a command that may change something).
    """
    permissions.require(permissions.can_administer(by))
    if "commands" in settings:
        settings["commands"] = read_commands(settings["commands"], field="commands")
    with transaction.atomic():
        ProbePlan.objects.get_or_create(server=server)
        plan = ProbePlan.objects.select_for_update().get(server=server)
        before = {name: getattr(plan, name) for name in settings}
        changes = changes_between(before, settings)
        if changes:
            ProbePlan.objects.filter(pk=plan.pk).update(**settings)
            record_event(
                server,
                kind="probe_plan_changed",
                message="Plan of the probe changed.",
                actor=by,
                data=changes,
            )
    return plan_of(server)


@transaction.atomic
def moment_mark(
    *,
    by: User,
    server: PerforceServer,
    label: str,
    at: dt.datetime,
    note: str = "",
) -> Moment:
    """Mark when something was changed at a server.

    Raises: NotAllowed, InvalidRequest (no label, a time to come or long ago).
    """
    permissions.require(permissions.can_administer(by))
    label = one_line(label, word="The label", most=LONGEST_LABEL)
    if not label:
        raise InvalidRequest.at("label", "Say what was changed.")
    now = clocks.database_now()
    if at > now:
        raise InvalidRequest.at("at", "This is yet to come. Mark it afterwards.")
    if at < now - KEPT_FOR:
        raise InvalidRequest.at(
            "at", "Nothing is kept for longer than 13 months. Give a later time."
        )
    moment = Moment.objects.create(
        server=server, label=label, at=at, note=storable(note.strip()), created_by=by
    )
    _record_moment(moment, by=by, kind="moment_marked", did="Marked")
    return moment


@transaction.atomic
def moment_delete(*, by: User, moment: Moment) -> None:
    """Delete a mark; what was measured stays.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    _record_moment(moment, by=by, kind="moment_deleted", did="Deleted the mark")
    moment.delete()


@transaction.atomic
def report_mail(*, by: User, report: Report, people: str) -> list[ReportMail]:
    """Mail a report to people, by their usernames between blanks or commas.

    Who has no mail address gets none, which its row says at once.

    Raises: NotAllowed, MailsNotSent, InvalidRequest (nobody, somebody unknown, many).
    """
    permissions.require(permissions.can_administer(by))
    if not mails_are_sent():
        raise MailsNotSent
    names = list(dict.fromkeys(people.replace(",", " ").split()))
    if not 1 <= len(names) <= MOST_PEOPLE:
        raise InvalidRequest.at(
            "people", f"Name 1 to {MOST_PEOPLE} people by their usernames."
        )
    known = {
        person.username: person
        for person in User.objects.filter(username__in=names, is_active=True)
    }
    for name in names:
        if name not in known:
            raise InvalidRequest.at("people", f"Nobody here has the username {name}.")
    context = {
        "report": report,
        "by": by.get_username(),
        "zone": timezone.get_current_timezone(),
    }
    text = render_to_string("probes/mails/report.txt", context)
    _, _, body = text.partition("\n")
    mails = [
        ReportMail.objects.create(
            server=report.server,
            person=known[name],
            subject=one_line(report.title, word="The title", most=200),
            text=storable(body.strip()) + "\n",
            requested_by=by,
            trouble=why_no_mail_to(known[name]),
        )
        for name in names
    ]
    for mail in mails:
        if not mail.trouble:
            queue_report_mail(mail.pk)
    record_event(
        report.server,
        kind="report_mails_requested",
        message=f"Requested to mail the report “{report.title}” to {', '.join(names)}.",
        actor=by,
    )
    return mails


def queue_report_mail(mail_id: int) -> None:
    """Queue the job that sends a mail."""
    job = app.configure_task(
        SEND_REPORT_MAIL,
        queue=PERFORCE,
        queueing_lock=f"{SEND_REPORT_MAIL}.{mail_id}",
        lock=SEND_REPORT_MAIL,
    )
    defer_once(job, mail_id=mail_id)


def _record_moment(moment: Moment, *, by: User, kind: str, did: str) -> None:
    record_event(
        moment.server,
        kind=kind,
        message=f"{did} {moment.label} at {recorded(moment.at)}.",
        actor=by,
    )
