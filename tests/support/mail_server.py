"""A mail server as tests want it: it notes when it got what, and fails on order."""

from __future__ import annotations

import datetime as dt
import smtplib
from collections.abc import Sequence
from typing import ClassVar

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils import timezone

BACKEND = "tests.support.mail_server.Mailbox"


class Killed(BaseException):
    """The sending process was killed."""


class Mailbox(BaseEmailBackend):
    """Keeps what was sent with its time. `trouble` is for the next mail alone."""

    delivered: ClassVar[list[tuple[dt.datetime, EmailMessage]]] = []
    trouble: ClassVar[str] = ""

    @classmethod
    def empty(cls) -> None:
        cls.delivered.clear()
        cls.trouble = ""

    @classmethod
    def subjects(cls) -> list[str]:
        return [str(message.subject) for _, message in cls.delivered]

    def open(self) -> bool:
        if Mailbox.trouble == "unreachable":
            raise ConnectionRefusedError("Connection refused")
        return True

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        trouble, Mailbox.trouble = Mailbox.trouble, ""
        if trouble == "killed before":
            raise Killed
        if trouble == "refused":
            raise smtplib.SMTPDataError(451, b"Greylisted, try again later")
        now = timezone.now()
        Mailbox.delivered.extend((now, message) for message in email_messages)
        if trouble == "killed after":
            raise Killed
        if trouble == "connection lost after":
            raise smtplib.SMTPServerDisconnected("Connection unexpectedly closed")
        return len(email_messages)
