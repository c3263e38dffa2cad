"""Mails that somebody requested, each of them a row: sent once at most."""

from __future__ import annotations

import datetime as dt
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import models
from django.db.models.functions import Now

from provisioner.accounts.mails import NotReached, NotTaken, mail_server
from provisioner.lib import clocks

log = structlog.get_logger(__name__)

TRIED_FOR = dt.timedelta(days=1)
NOT_TAKEN = "The mail server did not accept it."


class RequestedMail(models.Model):
    """A mail that is claimed before it is sent, so that nobody gets it twice.

    `trouble` says why it was not sent. Claimed and neither sent nor in trouble: the
    connection broke half-way.
    """

    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(db_default=Now())
    claimed_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)

    class Meta:
        abstract = True

    def send_once(self, message: EmailMessage, **claimed: Any) -> bool:
        """Send a mail unless that was done; return whether it was sent.

        `claimed` are columns that are saved before. Without an answer of the mail
        server it is tried again for a day. If the connection breaks half-way, nobody
        knows whether it arrived, and it is not sent again.
        """
        rows = type(self)._default_manager.filter(pk=self.pk)
        waiting = rows.filter(claimed_at=None, trouble="")
        try:
            with mail_server() as message.connection:
                if not waiting.update(claimed_at=clocks.database_now(), **claimed):
                    return False
                message.send()
        except NotReached as error:
            log.warning("mail_not_taken", **self._log_context(), error=str(error))
            self.give_up_if_old(NOT_TAKEN)
            return False
        except NotTaken:
            self.give_up(NOT_TAKEN)
            return False
        rows.update(sent_at=clocks.database_now())
        return True

    def give_up_if_old(self, why: str) -> None:
        """Give up what has been tried for a day."""
        if clocks.database_now() - self.requested_at > TRIED_FOR:
            self.give_up(why)

    def give_up(self, why: str) -> None:
        """Save why a mail is not sent."""
        type(self)._default_manager.filter(pk=self.pk).update(trouble=why)
        log.warning("requested_mail_not_sent", **self._log_context(), reason=why)

    def _log_context(self) -> dict[str, Any]:
        return {f"{self._meta.db_table}_id": self.pk}
