"""Mails with reports: each is sent once at most."""

from __future__ import annotations

import datetime as dt

import structlog
from django.core.mail import EmailMessage

from provisioner.accounts.mails import (
    NotReached,
    NotTaken,
    mail_server,
    why_no_mail_to,
)
from provisioner.audit_log.actions import record_event
from provisioner.lib import clocks
from provisioner.probes.models import ReportMail

log = structlog.get_logger(__name__)

TRIED_FOR = dt.timedelta(days=1)
NOT_TAKEN = "The mail server did not accept it."


def send(mail: ReportMail) -> None:
    """Send a mail unless it was sent already.

    Without an answer of the mail server it is tried again for a day. If the connection
    breaks half-way, nobody knows whether it arrived, and it is not sent again.
    """
    if why := why_no_mail_to(mail.person):
        _give_up(mail, why)
        return
    address = mail.person.email
    message = EmailMessage(mail.subject, mail.text, to=[address])
    try:
        with mail_server() as message.connection:
            if not _claim(mail):
                return
            message.send()
    except NotReached as error:
        log.warning("mail_not_taken", report_mail_id=mail.pk, error=str(error))
        if clocks.database_now() - mail.requested_at > TRIED_FOR:
            _give_up(mail, NOT_TAKEN)
    except NotTaken:
        _give_up(mail, NOT_TAKEN)
    else:
        ReportMail.objects.filter(pk=mail.pk).update(sent_at=clocks.database_now())
        record_event(
            mail.server,
            kind="report_mail_sent",
            message=f"Mail to {address}: {mail.subject}.",
            actor=mail.requested_by,
        )


def _claim(mail: ReportMail) -> bool:
    waiting = ReportMail.objects.filter(pk=mail.pk, claimed_at=None, trouble="")
    return bool(waiting.update(claimed_at=clocks.database_now()))


def _give_up(mail: ReportMail, why: str) -> None:
    ReportMail.objects.filter(pk=mail.pk).update(trouble=why)
    log.warning("report_mail_not_sent", report_mail_id=mail.pk, reason=why)
