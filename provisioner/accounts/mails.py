"""Whether this installation can send mails."""

from __future__ import annotations

from django.conf import settings

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
