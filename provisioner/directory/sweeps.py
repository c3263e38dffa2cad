"""The nightly sync, and mails to administrators about what they must know of."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models.functions import Now
from django.template.loader import render_to_string
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.directory.actions import syncs
from provisioner.directory.deferring import MAIL_TASK, SYNC_TASK
from provisioner.directory.models import DirectorySync
from provisioner.directory.people import sources
from provisioner.identities.absence import closes_absent_people

KEPT_FOR = dt.timedelta(days=90)
SENT_AGAIN = RetryStrategy(max_attempts=5, wait=60)


@app.periodic(cron="17 3 * * *")
@app.task(
    name=SYNC_TASK, queue="sweeps", queueing_lock="directory_sync", lock=SYNC_TASK
)
def sweep_directory(timestamp: int = 0, is_preview: bool = False) -> None:
    """Follow directory and Perforce each night, and close accounts of the absent."""
    if sources() or closes_absent_people():
        syncs.directory_sync(is_preview=is_preview)
    DirectorySync.objects.filter(began_at__lt=Now() - KEPT_FOR).delete()


@app.task(name=MAIL_TASK, queue="sweeps", retry=SENT_AGAIN)
def send_administrator_mail(event_id: int, account_id: int) -> None:
    """Mail one administrator an event of the audit log."""
    reader = User.objects.filter(pk=account_id, is_active=True, is_staff=True).first()
    if reader is None or not reader.email:
        return
    event = Event.objects.get(pk=event_id)
    subject, _, text = render_to_string(
        f"directory/mails/{event.kind}.txt",
        {
            "reader": reader,
            "event": event,
            "url": settings.PUBLIC_URL.rstrip("/"),
        },
    ).partition("\n")
    EmailMessage(
        subject=subject.removeprefix("Subject:").strip(),
        body=text.strip() + "\n",
        to=[reader.email],
    ).send()
