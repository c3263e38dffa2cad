"""Moves of templates' volumes, and what such volumes take."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation


class MoveOperation(models.TextChoices):
    MOVE = "template_move", "Move to another aggregate"
    PAUSE = "template_move_pause", "Pause the move"
    STOP = "template_move_stop", "Stop the move"


class TemplatePlace(models.Model):
    """What the volume of a template takes where it is, as last measured.

    `footprint_bytes` is what it takes there with its snapshots, None where ONTAP does
    not say.
    """

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="place"
    )
    tiering_policy = models.CharField(max_length=32, blank=True)
    footprint_bytes = models.BigIntegerField(null=True, blank=True)
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.template} in {self.aggregate}"

    @property
    def aggregate(self) -> str:
        """The aggregate that the volume is in."""
        return self.template.aggregate


class Move(models.Model):
    """A move of a template's volume, as one operation asked for it.

    `needed_bytes` is what it took in its aggregate when the move began. `paused_at` is
    set while ONTAP keeps it paused for us: resuming it is a move of its own.
    """

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="moves"
    )
    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, related_name="move"
    )
    source = models.CharField(max_length=255)
    destination = models.CharField(max_length=255)
    needed_bytes = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    paused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.template} to {self.destination}"
