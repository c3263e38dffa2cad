"""Mails with reports: each is sent once at most."""

from __future__ import annotations

from django.core.mail import EmailMessage

from provisioner.accounts.mails import why_no_mail_to
from provisioner.audit_log.actions import record_event
from provisioner.probes.models import ReportMail


def send(mail: ReportMail) -> None:
    """Send a mail unless that was done, or its person cannot get one."""
    if why := why_no_mail_to(mail.person):
        mail.give_up(why)
        return
    address = mail.person.email
    message = EmailMessage(mail.subject, mail.text, to=[address])
    if mail.send_once(message):
        record_event(
            mail.server,
            kind="report_mail_sent",
            message=f"Mail to {address}: {mail.subject}.",
            actor=mail.requested_by,
        )
