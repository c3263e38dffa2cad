"""Workspaces that were restored from a copy at another site."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.copies.models import WorkspaceCopy
from provisioner.workspaces.models import RecordedClient, Workspace


class RecoveryOperation(models.TextChoices):
    RECOVER = "recover", "Restore from a copy"


class Recovery(RecordedClient):
    """A workspace with the files and opened work of another, as of a copy's snapshot.

    What was recorded with the snapshot is kept here, since later transfers replace it.
    """

    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, related_name="recovery"
    )
    source = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="recoveries"
    )
    copy = models.ForeignKey(
        WorkspaceCopy, on_delete=models.PROTECT, related_name="recoveries"
    )
    snapshot_name = models.CharField(max_length=60)
    taken_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="recovery_is_between_two", condition=~Q(workspace=F("source"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.source} as {self.workspace}"
