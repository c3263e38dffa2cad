"""Whether this installation sends mails at all."""

from __future__ import annotations

from django.conf import settings

NO_MAIL_SERVER = "django.core.mail.backends.dummy.EmailBackend"


def mails_are_sent() -> bool:
    return str(settings.EMAIL_BACKEND) != NO_MAIL_SERVER
