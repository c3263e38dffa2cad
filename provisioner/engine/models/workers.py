"""Which queues the workers that run serve."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class WorkerQueues(models.Model):
    """What a pool of a worker serves, written when it starts.

    `clock_ahead_seconds` is 0 where its clock is right, negative where it is behind.

    Procrastinate knows under `worker_id` when it was last heard. `own`: what its queues
    begin with, "" for those that need no slots of their own; `queues` None: all such.
    """

    worker_id = models.BigIntegerField(unique=True)
    queues = ArrayField(models.CharField(max_length=100), null=True)
    own = models.CharField(max_length=100, default="", blank=True)
    host = models.CharField(max_length=255)
    process_id = models.PositiveIntegerField()
    clock_ahead_seconds = models.FloatField(default=0.0)
    started_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "queues of workers"

    def __str__(self) -> str:
        return f"{self.host}, process {self.process_id}"
