"""Sending mails: each at most once.

A mail is claimed in its own transaction before it is sent. If the sender is killed in
between, the mail is not sent again: the next warning and the trash make up for a lost
one, while duplicates teach people to ignore mails. If the server certainly did not
accept the mail, the claim is released and the mail is retried.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts.mails import (
    NO_MAILS,
    NotTaken,
    mail_server,
    mails_are_sent,
)
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template, TemplateOperation
from provisioner.engine.deferring import defer_once
from provisioner.engine.models import Operation
from provisioner.engine.queues import PERFORCE
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.notify import templates as news
from provisioner.notify import workspaces as notices
from provisioner.notify.channels import why_no_mail_about
from provisioner.notify.mails import Mail, address_of, mail_of
from provisioner.notify.models import Notification
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace

log = structlog.get_logger(__name__)

# Pauses of 1, 2, 4 … 60 minutes: about a day in all.
FIRST_PAUSE = dt.timedelta(minutes=1)
LONGEST_PAUSE = dt.timedelta(hours=1)
MOST_ATTEMPTS = 30
# How long after a build people whose changes are found late still get a mail.
NOTIFIED_WITHIN = dt.timedelta(days=1)
NOT_TAKEN = "The mail server did not accept it."


@dataclass(frozen=True)
class Claimed:
    """A mail that this process has claimed and must send."""

    notice: Notification
    mail: Mail


@app.periodic(cron="* * * * *")
@app.task(
    name="sweep_notifications", queue="sweeps", queueing_lock="sweep_notifications"
)
def sweep_notifications(timestamp: int) -> None:
    """Plan mails about late changes, look up addresses, send every mail that is due."""
    now = clocks.database_now()
    tell_late(now=now)
    ask_for_addresses()
    send_due(now=now)


def tell_late(*, now: dt.datetime) -> None:
    """Plan the mails about recent builds again, as some changes are found late."""
    newest = (
        Operation.objects.filter(
            kind=TemplateOperation.BUILD, ended_at__gt=now - NOTIFIED_WITHIN
        )
        .exclude(subject__template__state=Template.State.DELETED)
        .order_by("subject_id", "-pk")
        .distinct("subject_id")
    )
    for build in newest.select_related("subject__template__site"):
        with transaction.atomic():
            template = build.subject.template
            Template.objects.select_for_update(no_key=True).get(pk=template.pk)
            news.tell(build, now=now)


def ask_for_addresses() -> None:
    """Queue requests to Perforce servers for addresses of users without an account."""
    servers = notices.without_address().values_list(
        "template__site__perforce_server", flat=True
    )
    for server_id in servers.distinct().order_by():
        name = f"look_up_addresses.{server_id}"
        job = look_up_addresses.configure(queueing_lock=name, lock=name)
        defer_once(job, server_id=server_id)


@app.task(name="look_up_addresses", queue=PERFORCE)
def look_up_addresses(server_id: int) -> None:
    """Look up users' mail addresses on a Perforce server. Failures are retried."""
    server = PerforceServer.objects.filter(pk=server_id).first()
    if server is None:
        return
    now = clocks.database_now()
    waiting = notices.without_address().filter(
        template__site__perforce_server=server_id
    )
    perforce = registry.perforce(server)
    for name in list(waiting.values_list("p4_user", flat=True).distinct().order_by()):
        of_this_one = waiting.filter(p4_user=name)
        try:
            address = perforce.email_of(name)
        except GatewayError as error:
            log.warning("address_not_looked_up", **error.log_context())
            of_this_one.filter(created_at__lt=now - NOTIFIED_WITHIN).update(
                voided_at=now, void_reason=f"No mail address is known: {error}"[:500]
            )
            continue
        if is_address(address):
            of_this_one.update(address=address)
        else:
            of_this_one.update(
                voided_at=now,
                void_reason=f"The Perforce user {name} has no mail address."[:500],
            )


def is_address(text: str) -> bool:
    """Return whether a text from a user spec is a valid mail address."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def send_due(*, now: dt.datetime) -> int:
    """Send every mail that is due; return how many were sent."""
    sent = 0
    for notification_pk in list(notices.due(now).values_list("pk", flat=True)):
        claimed = _claim(notification_pk, now=now)
        if claimed is None:
            continue
        try:
            _send(claimed.mail)
        except NotTaken as error:
            _give_back(claimed.notice, now=now)
            log.warning(
                "mail_not_taken", notification_id=notification_pk, error=str(error)
            )
            continue
        except Exception:
            # The connection broke half-way: the server may have accepted the mail.
            log.exception("mail_perhaps_sent", notification_id=notification_pk)
            continue
        _mark_sent(claimed)
        sent += 1
    return sent


def _claim(notification_pk: int, *, now: dt.datetime) -> Claimed | None:
    """Claim a mail if it is still true, else void it; None if nothing is to be sent."""
    with transaction.atomic():
        found = Notification.objects.filter(pk=notification_pk).first()
        if found is None:
            return None
        workspace, template = _locked_subject(found)
        notice = (
            notices.due(now)
            .select_for_update(of=("self",))
            .select_related("operation", "recipient", "server")
            .filter(pk=notification_pk)
            .first()
        )
        if notice is None:
            return None
        notice.workspace, notice.template = workspace, template
        if notice.operation is not None:
            notice.operation.subject.template = template
        reason = notices.why_not(notice, now=now) or _why_not_deliverable(notice)
        is_too_late = notices.is_too_late(notice, now=now)
        if is_too_late and not reason and not notice.attempts:
            return None  # the lease goes on, for want of a warning
        if is_too_late and not reason:
            reason = NOT_TAKEN
        if reason:
            _void(notice, reason, now=now)
            return None
        mail = mail_of(notice, now=now)
        Notification.objects.filter(pk=notice.pk).update(
            claimed_at=now, sent_to=mail.to
        )
        return Claimed(notice, mail)


def _locked_subject(notice: Notification) -> tuple[Workspace | None, Template | None]:
    """Lock the mail's subject, so that the mail stays true until it is claimed."""
    if notice.workspace_id is not None:
        workspaces = Workspace.objects.select_for_update(of=("self",))
        related = workspaces.select_related("owner", "template", "snapshot", "site")
        return related.get(pk=notice.workspace_id), None
    if notice.server_id is not None:
        return None, None
    # Not as a key: people request workspaces of the template meanwhile.
    templates = Template.with_deleted.select_for_update(of=("self",), no_key=True)
    related_template = templates.select_related("site__perforce_server")
    assert notice.template_id is not None
    return None, related_template.get(pk=notice.template_id)


def _why_not_deliverable(notice: Notification) -> str:
    if not mails_are_sent():
        return NO_MAILS
    owner = notice.workspace.owner if notice.workspace else notice.recipient
    if owner is not None and (unwanted := why_no_mail_about(owner, notice.kind)):
        return unwanted
    if notice.workspace is None and owner is not None and not owner.is_active:
        return f"The account {owner.username} is closed."
    address = address_of(notice)
    if not address:
        name = owner.username if owner else notice.p4_user
        return f"The account {name} has no mail address."
    if notice.workspace is None and _was_told_at(address, notice=notice):
        return "Somebody else with this mail address already got it."
    if notice.attempts >= MOST_ATTEMPTS:
        return NOT_TAKEN
    return ""


def _was_told_at(address: str, *, notice: Notification) -> bool:
    """Return whether another recipient with this address got the same mail."""
    same = Notification.objects.filter(
        template=notice.template_id,
        server=notice.server_id,
        operation=notice.operation_id,
        kind=notice.kind,
        deadline_at=notice.deadline_at,
    )
    return same.filter(sent_to__iexact=address).exclude(pk=notice.pk).exists()


def _void(notice: Notification, reason: str, *, now: dt.datetime) -> None:
    Notification.objects.filter(pk=notice.pk).update(voided_at=now, void_reason=reason)
    log.info("notification_voided", notification_id=notice.pk, reason=reason)


def _send(mail: Mail) -> None:
    """Hand a mail to the server.

    Raises: NotTaken if it was certainly not accepted. After any other error it may
    have been.
    """
    with mail_server() as connection:
        EmailMessage(
            mail.subject, mail.text, to=[mail.to], connection=connection
        ).send()


def _give_back(notice: Notification, *, now: dt.datetime) -> None:
    """Release the claim, to retry after a pause that doubles each time."""
    pause = min(FIRST_PAUSE * 2**notice.attempts, LONGEST_PAUSE)
    Notification.objects.filter(pk=notice.pk, sent_at__isnull=True).update(
        claimed_at=None, attempts=notice.attempts + 1, retry_at=now + pause
    )


def _mark_sent(claimed: Claimed) -> None:
    with transaction.atomic():
        Notification.objects.filter(pk=claimed.notice.pk).update(
            sent_at=clocks.database_now()
        )
        record_event(
            claimed.notice.workspace
            or claimed.notice.template
            or claimed.notice.server,
            kind="notification_sent",
            message=f"Mail to {claimed.mail.to}: {claimed.mail.subject}.",
            data={"notice": claimed.notice.pk},
        )
    log.info(
        "notification_sent", notification_id=claimed.notice.pk, kind=claimed.notice.kind
    )
