"""Mails that ask Perforce users to update programs: each is sent once at most."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.template.loader import render_to_string

from provisioner.audit_log.actions import record_event
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.insight.models import ProgramMail
from provisioner.insight.releases import NOT_AGAIN_FOR
from provisioner.lib import clocks


def send(mail: ProgramMail) -> None:
    """Look up the address of a mail, and send it unless it was sent already.

    What may work later is tried again for a day. If the connection breaks half-way,
    nobody knows whether it arrived, and it is not sent again.
    """
    try:
        address = registry.perforce(mail.server).email_of(mail.p4_user)
    except GatewayError as error:
        mail.give_up_if_old(f"No mail address is known: {error.sentence}")
        return
    if why := _why_not(mail, address):
        mail.give_up(why)
        return
    subject, _, text = render_to_string(
        "insight/mails/program_old.txt", {"mail": mail}
    ).partition("\n")
    message = EmailMessage(
        subject.removeprefix("Subject:").strip(), text.strip() + "\n", to=[address]
    )
    if mail.send_once(message, address=address):
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
