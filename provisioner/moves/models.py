"""Moves of templates' volumes, and where such volumes can be."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.sites.models import Site


class MoveOperation(models.TextChoices):
    MOVE = "template_move", "Move to another aggregate"
    STOP = "template_move_stop", "Stop the move"


class AggregateSpace(models.Model):
    """The space of an aggregate that the SVM of a site may use, as last measured."""

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="aggregates")
    name = models.CharField(max_length=255)
    size_bytes = models.BigIntegerField()
    available_bytes = models.BigIntegerField()
    measured_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("site", "name"), name="aggregate_space_once_for_a_site"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} at {self.site}"

    @property
    def room_bytes(self) -> int:
        """What volumes may take of it: the site keeps a part free."""
        kept = self.size_bytes * self.site.free_percent // 100
        return max(self.available_bytes - kept, 0)


class TemplatePlace(models.Model):
    """Where the volume of a template is, as last measured.

    `footprint_bytes` is what it takes there with its snapshots, None where ONTAP does
    not say.
    """

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="place"
    )
    aggregate = models.CharField(max_length=255)
    tiering_policy = models.CharField(max_length=32, blank=True)
    footprint_bytes = models.BigIntegerField(null=True, blank=True)
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.template} in {self.aggregate}"


class Move(models.Model):
    """A move of a template's volume, as one operation asked for it.

    `needed_bytes` is what it took in its aggregate when the move began.
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

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.template} to {self.destination}"
