"""Rescues being read: parts on their way from a host to a reader."""

from __future__ import annotations

import uuid

from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.gateways.hosts.rescues.writing import MANIFEST, TAR
from provisioner.workspaces.models import Rescue


class RescueReadQuerySet(models.QuerySet["RescueRead"]):
    def forget(self) -> None:
        """Delete these reads with all their pieces, even while a host still writes.

        The host's insert waits for our lock and then finds no read to belong to.
        Without the lock it would land between the two deletions, and make ours fail.
        """
        with transaction.atomic():
            reads = list(self.select_for_update().values_list("pk", flat=True))
            RescueRead.objects.filter(pk__in=reads).delete()


class RescueRead(models.Model):
    """A download of a rescue's file; the row is deleted afterwards.

    `size_bytes` is set once a host has opened the file, `problem` if none could.
    """

    class File(models.TextChoices):
        ARCHIVE = TAR, "The archive"
        LIST = MANIFEST, "The list of what is in it"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    rescue = models.ForeignKey(Rescue, on_delete=models.CASCADE, related_name="reads")
    file = models.CharField(max_length=20, choices=File)
    size_bytes = models.BigIntegerField(null=True)
    problem = models.CharField(max_length=60, blank=True)
    problem_message = models.TextField(blank=True)
    asked_at = models.DateTimeField(
        db_default=Now(),
        editable=False,
        help_text="When more of it was last requested.",
    )

    objects = RescueReadQuerySet.as_manager()

    class Meta:
        ordering = ("asked_at",)
        constraints = (
            models.CheckConstraint(
                name="rescue_read_problem_has_message",
                condition=Q(problem="", problem_message="")
                | (~Q(problem="") & ~Q(problem_message="")),
            ),
        )
        indexes = (models.Index(fields=("asked_at",), name="rescue_read_by_age"),)

    def __str__(self) -> str:
        return f"{self.file} of {self.rescue}"


class RescuePiece(models.Model):
    """Bytes of a file that a host has read, until they are sent.

    The table is unlogged: what a crash of the database loses can be read again.
    """

    read = models.ForeignKey(
        RescueRead, on_delete=models.CASCADE, related_name="pieces"
    )
    offset = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ("read", "offset")
        constraints = (
            models.UniqueConstraint(
                fields=("read", "offset"), name="rescue_piece_comes_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.read} from {self.offset:,}"
