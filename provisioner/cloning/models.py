"""Workspaces that were cloned from other workspaces."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.workspaces.models import RecordedClient, Workspace

SNAPSHOT_PREFIX = "cloneyard-clone-"


class CloningOperation(models.TextChoices):
    CLONE = "clone_workspace", "Clone workspace"


def new_snapshot_name() -> str:
    return f"{SNAPSHOT_PREFIX}{uuid.uuid4().hex[:12]}"


class WorkspaceClone(RecordedClient):
    """A workspace with the files, have list and opened files of another one.

    It is a FlexClone of a snapshot of the source's volume: one of its own, which goes
    with it, or one that ONTAP took by a policy. `taken_at` is empty until there is
    one, `recorded_at` until the source's client was read. `released_at`: the source
    keeps nothing for it any more.
    """

    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, related_name="cloning"
    )
    source = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="clonings"
    )
    snapshot_name = models.CharField(max_length=255, default=new_snapshot_name)
    has_own_snapshot = models.BooleanField(default=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="workspace_clone_is_between_two",
                condition=~Q(workspace=F("source")),
            ),
            models.CheckConstraint(
                name="workspace_clone_of_a_policy_was_taken",
                condition=Q(has_own_snapshot=True) | Q(taken_at__isnull=False),
            ),
        )
        indexes = (
            models.Index(
                fields=("source",),
                condition=Q(released_at__isnull=True),
                name="workspace_clone_unreleased",
            ),
        )

    def __str__(self) -> str:
        return f"{self.source} as {self.workspace}"
