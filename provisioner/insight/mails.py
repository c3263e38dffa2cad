"""Mails that ask Perforce users to update programs: each is sent once at most."""

from __future__ import annotations

import datetime as dt

import structlog
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.template.loader import render_to_string

from provisioner.accounts.mails import NotReached, NotTaken, mail_server
from provisioner.audit_log.actions import record_event
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.insight.models import ProgramMail
from provisioner.insight.releases import NOT_AGAIN_FOR
from provisioner.lib import clocks

log = structlog.get_logger(__name__)

TRIED_FOR = dt.timedelta(days=1)
NOT_TAKEN = "The mail server did not accept it."


def send(mail: ProgramMail) -> None:
    """Look up the address of a mail, and send it unless it was sent already.

    What may work later is tried again for a day. If the connection breaks half-way,
    nobody knows whether it arrived, and it is not sent again.
    """
    try:
        address = registry.perforce(mail.server).email_of(mail.p4_user)
    except GatewayError as error:
        _give_up_if_old(mail, f"No mail address is known: {error.sentence}")
        return
    if why := _why_not(mail, address):
        _give_up(mail, why)
        return
    subject, _, text = render_to_string(
        "insight/mails/program_old.txt", {"mail": mail}
    ).partition("\n")
    message = EmailMessage(
        subject.removeprefix("Subject:").strip(), text.strip() + "\n", to=[address]
    )
    try:
        with mail_server() as message.connection:
            if not _claim(mail, address):
                return
            message.send()
    except NotReached as error:
        log.warning("mail_not_taken", program_mail_id=mail.pk, error=str(error))
        _give_up_if_old(mail, NOT_TAKEN)
    except NotTaken:
        _give_up(mail, NOT_TAKEN)
    else:
        ProgramMail.objects.filter(pk=mail.pk).update(sent_at=clocks.database_now())
        record_event(
            mail.server,
            kind="program_mail_sent",
            message=f"Mail to {address}: please update {_named(mail)}.",
            actor=mail.requested_by,
        )


def _named(mail: ProgramMail) -> str:
    return ", ".join(f"{each['program']} {each['release']}" for each in mail.outdated)


def _why_not(mail: ProgramMail, address: str) -> str:
    try:
        validate_email(address)
    except ValidationError:
        return f"The Perforce user {mail.p4_user} has no mail address."
    others = ProgramMail.objects.filter(
        server=mail.server,
        address__iexact=address,
        trouble="",
        claimed_at__gte=clocks.database_now() - NOT_AGAIN_FOR,
    )
    if others.exclude(pk=mail.pk).exists():
        return "Somebody else with this mail address already got one."
    return ""


def _claim(mail: ProgramMail, address: str) -> bool:
    waiting = ProgramMail.objects.filter(pk=mail.pk, claimed_at=None, trouble="")
    return bool(waiting.update(claimed_at=clocks.database_now(), address=address))


def _give_up_if_old(mail: ProgramMail, why: str) -> None:
    if clocks.database_now() - mail.requested_at > TRIED_FOR:
        _give_up(mail, why)


def _give_up(mail: ProgramMail, why: str) -> None:
    ProgramMail.objects.filter(pk=mail.pk).update(trouble=why)
    log.warning("program_mail_not_sent", program_mail_id=mail.pk, reason=why)
