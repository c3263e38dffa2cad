"""Jobs of syncs and mails, queued with what they are about."""

from __future__ import annotations

from procrastinate.contrib.django import app

from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.engine.deferring import defer, defer_once

MAIL_TASK = "send_administrator_mail"
SYNC_TASK = "sweep_directory"


def queue_sync(*, is_preview: bool) -> bool:
    """Queue a sync or its preview; return False if one waits already."""
    job = app.configure_task(
        SYNC_TASK, queue="sweeps", queueing_lock="directory_sync", lock=SYNC_TASK
    )
    return defer_once(job, is_preview=is_preview)


def queue_mails(event: Event) -> None:
    """Queue a mail about the event to each administrator with an address."""
    if not mails_are_sent():
        return
    administrators = User.objects.filter(
        is_active=True, is_staff=True, is_service=False
    ).exclude(email="")
    for account_id in administrators.order_by("pk").values_list("pk", flat=True):
        job = app.configure_task(MAIL_TASK, queue="sweeps")
        defer(job, event_id=event.pk, account_id=account_id)
