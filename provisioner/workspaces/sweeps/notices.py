"""Sending mails: each at most once.

A mail is claimed in a transaction of its own before it is sent. A sender that is killed
between the two leaves a claim, and nobody sends it again: a lost warning is followed by
the next one and by the trash, a double one teaches people to ignore them. Where the
server has certainly not taken the mail, the claim is given back and it is tried again.
"""

from __future__ import annotations

import datetime as dt
import smtplib
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction
from django.utils import timezone
from procrastinate.contrib.django import app

from provisioner.workspaces import notices
from provisioner.workspaces.mails import Mail, mail_of
from provisioner.workspaces.models import Notice, Workspace
from provisioner.workspaces.states import record_event

log = structlog.get_logger(__name__)

# A minute, two, four … an hour: a day in all.
FIRST_PAUSE = dt.timedelta(minutes=1)
LONGEST_PAUSE = dt.timedelta(hours=1)
MOST_ATTEMPTS = 30
NOT_TAKEN = "The mail server did not take it."
NO_MAIL_SERVER = "django.core.mail.backends.dummy.EmailBackend"


@dataclass(frozen=True)
class Claimed:
    """A mail that is ours to send, now."""

    notice: Notice
    mail: Mail


class NotTaken(Exception):
    """The mail server has certainly not taken the mail."""


@app.periodic(cron="* * * * *")
@app.task(name="sweep_notices", queue="sweeps", queueing_lock="sweep_notices")
def sweep_notices(timestamp: int) -> None:
    """Send every mail that is due."""
    send_due(now=timezone.now())


def send_due(*, now: dt.datetime) -> int:
    """Send every mail that is due at a moment; return how many went out."""
    sent = 0
    for notice_pk in list(notices.due(now).values_list("pk", flat=True)):
        claimed = _claim(notice_pk, now=now)
        if claimed is None:
            continue
        try:
            _send(claimed.mail)
        except NotTaken as error:
            _give_back(claimed.notice, now=now)
            log.warning("mail_not_taken", notice_id=notice_pk, error=str(error))
            continue
        except Exception:
            # The connection broke in the middle: it may have been taken.
            log.exception("mail_perhaps_sent", notice_id=notice_pk)
            continue
        _mark_sent(claimed)
        sent += 1
    return sent


def _claim(notice_pk: int, *, now: dt.datetime) -> Claimed | None:
    """Claim a mail that is still true, or void it. None: there is nothing to send."""
    with transaction.atomic():
        found = Notice.objects.filter(pk=notice_pk).first()
        if found is None:
            return None
        workspace = (
            Workspace.objects.select_for_update(of=("self",))
            .select_related("owner", "template", "snapshot", "site")
            .get(pk=found.workspace_id)
        )
        notice = notices.due(now).select_for_update().filter(pk=notice_pk).first()
        if notice is None:
            return None
        reason = notices.why_not(notice, workspace, now=now) or _why_not_deliverable(
            notice, workspace
        )
        is_too_late = notices.is_too_late(notice, workspace, now=now)
        if is_too_late and not reason and not notice.attempts:
            return None  # the lease goes on, for want of a warning
        if is_too_late and not reason:
            reason = NOT_TAKEN
        if reason:
            _void(notice, reason, now=now)
            return None
        mail = mail_of(notice, workspace, now=now)
        Notice.objects.filter(pk=notice.pk).update(claimed_at=now, sent_to=mail.to)
        notice.workspace = workspace
        return Claimed(notice, mail)


def _why_not_deliverable(notice: Notice, workspace: Workspace) -> str:
    if settings.EMAIL_BACKEND == NO_MAIL_SERVER:
        return "No mail server is configured (EMAIL_URL)."
    if not workspace.owner.email:
        return f"The account {workspace.owner.username} has no mail address."
    if notice.attempts >= MOST_ATTEMPTS:
        return NOT_TAKEN
    return ""


def _void(notice: Notice, reason: str, *, now: dt.datetime) -> None:
    Notice.objects.filter(pk=notice.pk).update(voided_at=now, void_reason=reason)
    log.info("notice_voided", notice_id=notice.pk, reason=reason)


def _send(mail: Mail) -> None:
    """Hand a mail to the server.

    Raises: NotTaken where it has certainly not taken it; anything else, perhaps.
    """
    connection: BaseEmailBackend = get_connection()
    try:
        connection.open()
    except Exception as error:
        raise NotTaken(str(error)) from error
    try:
        EmailMessage(
            mail.subject, mail.text, to=[mail.to], connection=connection
        ).send()
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        raise NotTaken(str(error)) from error
    finally:
        connection.close()


def _give_back(notice: Notice, *, now: dt.datetime) -> None:
    """Let the mail be claimed again, after a pause that doubles."""
    pause = min(FIRST_PAUSE * 2**notice.attempts, LONGEST_PAUSE)
    Notice.objects.filter(pk=notice.pk, sent_at__isnull=True).update(
        claimed_at=None, attempts=notice.attempts + 1, retry_at=now + pause
    )


def _mark_sent(claimed: Claimed) -> None:
    with transaction.atomic():
        Notice.objects.filter(pk=claimed.notice.pk).update(sent_at=timezone.now())
        record_event(
            claimed.notice.workspace,
            kind="notice_sent",
            message=f"Mail to {claimed.mail.to}: {claimed.mail.subject}.",
            data={"notice": claimed.notice.pk},
        )
    log.info("notice_sent", notice_id=claimed.notice.pk, kind=claimed.notice.kind)
