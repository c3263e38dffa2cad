"""The queues that running workers serve."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from provisioner.lib.fields import EvidenceField


class WorkerQueues(models.Model):
    """The queues of a worker's pool, written when it starts.

    `clock_ahead_seconds` is 0 if its clock is right, negative if it is behind.
    Procrastinate's row `worker_id` has its last heartbeat. `own` is the prefix of its
    queues, "" for the common slots; `queues` is None for all queues that fit. `kernel`
    and `nfs_uses` are those of its host: what `uname -r` says, and NfsUse. `release` is
    its own.
    """

    worker_id = models.BigIntegerField(unique=True)
    queues = ArrayField(models.CharField(max_length=100), null=True)
    own = models.CharField(max_length=100, default="", blank=True)
    host = models.CharField(max_length=255)
    process_id = models.PositiveIntegerField()
    release = models.CharField(max_length=40, default="", blank=True)
    kernel = models.CharField(max_length=255, default="", blank=True)
    nfs_uses = EvidenceField(default=list)
    clock_ahead_seconds = models.FloatField(default=0.0)
    started_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "queues of workers"

    def __str__(self) -> str:
        return f"{self.host}, process {self.process_id}"


class KnownTimeline(models.Model):
    """The timeline of PostgreSQL that was seen last: one row.

    `since` is when it was first seen in place of another, None if there was none.
    """

    timeline = models.BigIntegerField()
    since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"timeline {self.timeline}"
