"""Mirrors of templates at other sites, and the snapshots that have arrived there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import HasOperations, Parameters
from provisioner.lib.names import TAG_PREFIX, underscored
from provisioner.lib.rows import few
from provisioner.sites.models import Site


class MirrorOperation(models.TextChoices):
    CREATE = "mirror_create", "Create mirror"
    TRANSFER = "mirror_transfer", "Transfer a snapshot"


@dataclass(frozen=True, kw_only=True)
class TransferParameters(Parameters):
    """Which copy is made, by the id of its row."""

    copy: int


@few
class Mirror(HasOperations):
    """A template's snapshots at another site, in a volume that SnapMirror fills.

    Each snapshot is transferred by name. How far it is behind follows from the
    newest copy that has arrived.
    """

    class State(models.TextChoices):
        CREATING = "creating", "Being created"
        READY = "ready", "Ready"
        TRANSFERRING = "transferring", "Transferring a snapshot"
        FAILED = "failed", "Failed"

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="mirrors"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="mirrors")
    name = models.CharField(
        max_length=100, editable=False, help_text="What lists of operations call it."
    )
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    relationship_uuid = models.CharField(max_length=36, blank=True)
    throttle_kilobytes = models.PositiveIntegerField(
        default=0, help_text="How fast transfers may be, in kB/s. 0: no limit."
    )
    state = models.CharField(max_length=12, choices=State, default=State.CREATING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("template__name", "site__name")
        constraints = (
            models.UniqueConstraint(
                fields=("template", "site"), name="mirror_once_at_a_site"
            ),
            models.CheckConstraint(
                name="mirror_ready_has_relationship",
                condition=~Q(state="ready")
                | (~Q(volume_uuid="") & ~Q(relationship_uuid="")),
            ),
            models.CheckConstraint(
                name="mirror_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        return f"cy_{underscored(self.template.name)}_m{self.tag.hex[:6]}"

    @property
    def volume_comment(self) -> str:
        """The tag that says whose volume this is (ONTAP shows it to any operator)."""
        return f"{TAG_PREFIX}mirror={self.tag}"

    @property
    def is_moving(self) -> bool:
        return self.state in (self.State.CREATING, self.State.TRANSFERRING)


class SnapshotCopy(models.Model):
    """A snapshot at a mirror's site. `bytes` and `seconds` are of its last transfer."""

    class State(models.TextChoices):
        COPYING = "copying", "Being transferred"
        AVAILABLE = "available", "Available"
        FAILED = "failed", "Failed"

    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, related_name="copies"
    )
    mirror = models.ForeignKey(Mirror, on_delete=models.PROTECT, related_name="copies")
    ontap_uuid = models.CharField(max_length=36, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.COPYING)
    bytes = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    arrived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-snapshot__created_at", "-pk")
        verbose_name_plural = "snapshot copies"
        constraints = (
            models.UniqueConstraint(
                fields=("snapshot", "mirror"), name="copy_once_in_a_mirror"
            ),
            models.CheckConstraint(
                name="copy_available_was_seen",
                condition=Q(state="available", arrived_at__isnull=False)
                & ~Q(ontap_uuid="")
                | ~Q(state="available") & Q(arrived_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.snapshot} at {self.mirror.site}"
