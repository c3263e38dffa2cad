"""Whether this installation can send mails, and handing one to its mail server."""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend

from provisioner.accounts.models import User

NO_MAIL_SERVER = "django.core.mail.backends.dummy.EmailBackend"


NO_MAILS = "This installation sends no mail: EMAIL_URL is not set."


def why_no_mail_to(person: User) -> str:
    """Return why a person gets no mail, as a sentence; "" if they do."""
    if not mails_are_sent():
        return NO_MAILS
    if person.email:
        return ""
    return f"{person} has no mail address: an administrator can add one."


def mails_are_sent() -> bool:
    return str(settings.EMAIL_BACKEND) != NO_MAIL_SERVER


class NotTaken(Exception):
    """The mail server did not accept a mail, for certain."""


class NotReached(NotTaken):
    """Nobody answered as the mail server."""


@contextmanager
def mail_server() -> Iterator[BaseEmailBackend]:
    """Yield a connection to the mail server.

    Raises: NotReached, NotTaken. After any other error in the block a mail may have
    been accepted.
    """
    connection: BaseEmailBackend = get_connection()
    try:
        connection.open()
    except Exception as error:
        raise NotReached(str(error)) from error
    try:
        yield connection
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        raise NotTaken(str(error)) from error
    finally:
        connection.close()
