"""Mail administrators what they must know of at once."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from provisioner.audit_log.models import Event
from provisioner.directory.deferring import queue_mails

MAILED = ("break_glass_sign_in", "directory_sync_asks")


@receiver(post_save, sender=Event, dispatch_uid="directory")
def _entered(instance: Event, created: bool, raw: bool, **kwargs: Any) -> None:
    if created and not raw and instance.kind in MAILED:
        queue_mails(instance)
