"""Copies of workspaces at other sites: the changes since their clones were made."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass, replace

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.engine.models import HasOperations, Parameters
from provisioner.lib.fullness import Fullness
from provisioner.lib.names import TAG_PREFIX, same_tag, underscored
from provisioner.sites.models import MeasuredVolume, Site
from provisioner.workspaces.models import ReadClient, Workspace

LEAST_MINUTES, MOST_MINUTES = 5, 7 * 24 * 60
KEPT_AT_SITE = 3
"""How many snapshots stay in a copy. The one that both clones share may count."""

SNAPSHOT_PREFIX = "cloneyard-copy-"


class CopyOperation(models.TextChoices):
    TRANSFER = "copy_transfer", "Copy workspace"
    DELETE = "copy_delete", "Delete copy"


@dataclass(frozen=True, kw_only=True)
class CopyParameters(Parameters):
    """The snapshot that is transferred, by the id of its `CopiedSnapshot`."""

    copied: int


def usual_purposes() -> list[str]:
    return [Workspace.Purpose.DEVELOPMENT.value]


class CopyRule(models.Model):
    """A template's workspaces are copied to `site`; those that are there, elsewhere.

    Those go to `second_site`. So the rule holds whichever of its sites is the home of
    the template. `purposes` are those of the workspaces that are copied.
    """

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="copy_rules"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="copy_rules")
    second_site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    every_minutes = models.PositiveSmallIntegerField(
        default=60,
        validators=[
            MinValueValidator(LEAST_MINUTES),
            MaxValueValidator(MOST_MINUTES),
        ],
    )
    purposes = ArrayField(
        models.CharField(max_length=16, choices=Workspace.Purpose),
        default=usual_purposes,
    )

    class Meta:
        ordering = ("template__name", "site__name")
        constraints = (
            models.UniqueConstraint(
                fields=("template", "site"), name="copy_rule_once_for_a_site"
            ),
            models.CheckConstraint(
                name="copy_rule_is_between_two",
                condition=~Q(site=F("second_site")),
            ),
            models.CheckConstraint(
                name="copy_rule_interval_in_range",
                condition=Q(
                    every_minutes__gte=LEAST_MINUTES, every_minutes__lte=MOST_MINUTES
                ),
            ),
        )

    def __str__(self) -> str:
        return f"Copies of workspaces of {self.template.name} at {self.site.name}"

    def destination_of(self, workspace: Workspace) -> int:
        """Return the id of the site to which a workspace is copied."""
        is_there = workspace.site_id == self.site_id
        return self.second_site_id if is_there else self.site_id

    @property
    def interval(self) -> dt.timedelta:
        return dt.timedelta(minutes=self.every_minutes)


class CopyManager(models.Manager["WorkspaceCopy"]):
    """Copies that are not deleted."""

    def get_queryset(self) -> models.QuerySet[WorkspaceCopy]:
        return super().get_queryset().exclude(state="deleted")

    def with_volume(self) -> models.QuerySet[WorkspaceCopy]:
        """Keep those that have a volume at their site, or get it now."""
        return self.get_queryset().filter(~Q(volume_uuid="") | Q(state="transferring"))


class WorkspaceCopy(MeasuredVolume, HasOperations):
    """A workspace at another site, in a clone of the template's volume there.

    That is the volume of a mirror or of the home. SnapMirror continues from the
    snapshot that both clones share, so only what changed since the clone is sent.
    While one waits, `status_message` is the limit that its first transfer waits for.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting for its first transfer"
        READY = "ready", "Copied"
        TRANSFERRING = "transferring", "Being copied"
        FAILED = "failed", "Failed"
        DELETING = "deleting", "Being deleted"
        DELETED = "deleted", "Deleted"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="copies"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="copies")
    name = models.CharField(max_length=200, editable=False)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    relationship_uuid = models.CharField(max_length=36, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.WAITING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    is_released = models.BooleanField(
        default=False, help_text="Its deletion has ended the relationship."
    )
    due_at = models.DateTimeField(
        db_default=Now(), help_text="When the next transfer may begin."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = CopyManager()
    with_deleted = models.Manager["WorkspaceCopy"]()

    class Meta:
        ordering = ("workspace__name", "site__name")
        base_manager_name = "with_deleted"
        default_manager_name = "with_deleted"
        constraints = (
            models.UniqueConstraint(
                fields=("workspace", "site"),
                condition=~Q(state="deleted"),
                name="copy_once_at_a_site",
            ),
            models.CheckConstraint(
                name="copy_ready_has_relationship",
                condition=~Q(state="ready")
                | (~Q(volume_uuid="") & ~Q(relationship_uuid="")),
            ),
            models.CheckConstraint(
                name="copy_failed_has_reason",
                condition=~Q(state="failed")
                | (~Q(status_code="") & Q(failed_at__isnull=False)),
            ),
        )
        indexes = (
            models.Index(
                fields=("due_at",),
                condition=Q(state__in=("waiting", "ready", "failed")),
                name="copy_by_due",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        return f"cy_{underscored(self.workspace.made_as)}_c{self.tag.hex[:6]}"

    @property
    def volume_comment(self) -> str:
        """The tag that marks the volume as this copy's, visible in ONTAP."""
        return f"{TAG_PREFIX}copy={self.tag}"

    def is_tagged(self, comment: str) -> bool:
        """Return whether a volume with this comment is this copy's."""
        return same_tag(comment, self.volume_comment)

    @property
    def volume_path(self) -> str:
        """The volume as SnapMirror names it at its own cluster."""
        return f"{self.site.svm}:{self.volume_name}"

    @property
    def fullness(self) -> Fullness | None:
        """How full its volume is.

        Its inodes come from the workspace's, whose owner is told of them there.
        """
        measured = super().fullness
        return replace(measured, used_inodes=None) if measured is not None else None

    @property
    def way_to_room(self) -> str:
        """What an administrator does about a volume that fills up."""
        return (
            f"A storage administrator enlarges {self.volume_path} at {self.site.name}, "
            "or raises its autosize maximum."
        )

    @property
    def gets_snapshots(self) -> bool:
        """Whether the workspace is copied there, now or later."""
        return not self.is_released and self.state not in ENDING_COPIES

    @property
    def is_moving(self) -> bool:
        return self.state in MOVING_COPIES


ENDING_COPIES = (WorkspaceCopy.State.DELETING, WorkspaceCopy.State.DELETED)
MOVING_COPIES = (WorkspaceCopy.State.TRANSFERRING, WorkspaceCopy.State.DELETING)
"""An operation is under way; in the others a copy rests."""


def new_snapshot_name() -> str:
    return f"{SNAPSHOT_PREFIX}{uuid.uuid4().hex[:12]}"


class CopiedSnapshot(ReadClient):
    """A workspace's snapshot for a copy, and what Perforce said of its client then."""

    copy = models.ForeignKey(
        WorkspaceCopy, on_delete=models.PROTECT, related_name="snapshots"
    )
    name = models.CharField(max_length=60, default=new_snapshot_name, unique=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    arrived_at = models.DateTimeField(null=True, blank=True)
    bytes = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                name="copied_snapshot_arrived_was_taken",
                condition=Q(arrived_at__isnull=True) | Q(taken_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.name
