"""Mirrors of templates at other sites, and the snapshots that have arrived there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import HasOperations, Parameters
from provisioner.lib import schedules
from provisioner.lib.fullness import Fullness
from provisioner.lib.names import TAG_PREFIX, same_tag, underscored
from provisioner.lib.rows import few
from provisioner.sites.models import MeasuredVolume, Site

MOST_KEPT = 200
POLICY_PREFIX = "cloneyard-keep-"
"""Of the names of our SnapMirror policies."""

ENDED = ("deleted", "promoted")
"""States of mirrors that are history."""

FORMER_HOMES = ("former", "returning", "giving-up", "given-up")
"""States of a template's former homes: nothing is cloned there."""


class MirrorOperation(models.TextChoices):
    CREATE = "mirror_create", "Create mirror"
    TRANSFER = "mirror_transfer", "Transfer snapshot"
    CHANGE = "mirror_change", "Change what a mirror keeps"
    DELETE = "mirror_delete", "Delete mirror"
    PROMOTE = "mirror_promote", "Promote mirror"
    REESTABLISH = "mirror_reestablish", "Re-establish mirror"
    GIVE_UP = "mirror_give_up", "Give up former home"


@dataclass(frozen=True, kw_only=True)
class TransferParameters(Parameters):
    """The snapshot that is transferred, by the id of its `MirroredSnapshot`."""

    mirrored: int


class MirrorManager(models.Manager["Mirror"]):
    """Mirrors that exist: neither deleted, nor a template's home since."""

    def get_queryset(self) -> models.QuerySet[Mirror]:
        return super().get_queryset().exclude(state__in=ENDED)


@few
class Mirror(MeasuredVolume, HasOperations):
    """A template's snapshots at another site, in a volume that SnapMirror fills.

    Each snapshot is transferred by name: at once when it becomes the template's
    default, at the times of `cron`, or when somebody requests it. `keep` of them stay
    at the site, besides those that clones need. `next_transfer_at` is the first time of
    `cron` for which nothing was begun yet. `trouble` is what the last check found wrong
    with the relationship, "" for nothing.

    When a mirror is promoted, its site becomes the template's home, and the former home
    becomes another row. `is_former_home`: its volume has the template's name and tag
    until it is re-established; `former_client` filled it, "" if that moved along.
    """

    class State(models.TextChoices):
        CREATING = "creating", "Being created"
        READY = "ready", "Ready"
        TRANSFERRING = "transferring", "Transferring a snapshot"
        FAILED = "failed", "Failed"
        DELETING = "deleting", "Being deleted"
        DELETED = "deleted", "Deleted"
        PROMOTING = "promoting", "Being promoted"
        PROMOTED = "promoted", "Became the home"
        FORMER = "former", "Former home"
        RETURNING = "returning", "Being re-established"
        GIVING_UP = "giving-up", "Being given up"
        GIVEN_UP = "given-up", "Given up"

    class Start(models.TextChoices):
        AT_ONCE = "at-once", "When a snapshot becomes the default"
        SCHEDULE = "schedule", "On a schedule"
        BY_HAND = "by-hand", "On request"

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="mirrors"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="mirrors")
    name = models.CharField(max_length=200, editable=False)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    chosen_aggregate = models.CharField(
        max_length=255,
        blank=True,
        help_text="Where its volume was to be made; empty: the site chooses.",
    )
    relationship_uuid = models.CharField(max_length=36, blank=True)
    is_former_home = models.BooleanField(default=False)
    former_client = models.CharField(max_length=200, blank=True)
    start = models.CharField(
        "transfers start", max_length=8, choices=Start, default=Start.AT_ONCE
    )
    cron = models.CharField("schedule", max_length=schedules.LONGEST, blank=True)
    next_transfer_at = models.DateTimeField(null=True, blank=True, editable=False)
    throttle_kilobytes = models.PositiveIntegerField(
        "throttle",
        default=0,
        help_text="The most that a transfer may use, in kB per second. 0: no limit.",
    )
    keep = models.PositiveSmallIntegerField(
        "snapshots to keep",
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_KEPT)],
        help_text="How many snapshots stay at the site, besides those that clones "
        "need.",
    )
    state = models.CharField(max_length=12, choices=State, default=State.CREATING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = MirrorManager()
    with_deleted = models.Manager["Mirror"]()

    class Meta:
        ordering = ("template__name", "site__name")
        base_manager_name = "with_deleted"
        default_manager_name = "with_deleted"
        constraints = (
            models.UniqueConstraint(
                fields=("template", "site"),
                condition=~Q(state__in=ENDED),
                name="mirror_once_at_a_site",
            ),
            models.CheckConstraint(
                name="mirror_ready_has_relationship",
                condition=~Q(state__in=("ready", "transferring"))
                | (~Q(volume_uuid="") & ~Q(relationship_uuid="")),
            ),
            models.CheckConstraint(
                name="mirror_failed_has_reason",
                condition=~Q(state="failed")
                | (~Q(status_code="") & Q(failed_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="mirror_with_schedule_has_next_time",
                condition=~Q(start="schedule")
                | (~Q(cron="") & Q(next_transfer_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="mirror_former_has_the_volume_of_the_home",
                condition=~Q(state__in=FORMER_HOMES)
                | (Q(is_former_home=True) & ~Q(volume_uuid="")),
            ),
            models.CheckConstraint(
                name="mirror_keeps_some",
                condition=Q(keep__gte=1, keep__lte=MOST_KEPT),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        if self.is_former_home:
            return self.template.volume_name
        return self.name_as_mirror

    @property
    def name_as_mirror(self) -> str:
        """The name of its volume, unless that is still the one of a former home."""
        return f"cy_{underscored(self.template.name)}_m{self.tag.hex[:6]}"

    @property
    def volume_comment(self) -> str:
        """The tag that marks the volume as this mirror's, visible in ONTAP."""
        if self.is_former_home:
            return self.template.volume_comment
        return self.comment_as_mirror

    @property
    def comment_as_mirror(self) -> str:
        """Its tag, unless the volume still has the one of a former home."""
        return f"{TAG_PREFIX}mirror={self.tag}"

    def is_tagged(self, comment: str) -> bool:
        """Return whether a volume with this comment is this mirror's."""
        return same_tag(comment, self.volume_comment)

    @property
    def junction_path(self) -> str:
        """Where its volume is mounted while a copy is compared."""
        return f"/{self.volume_name}"

    @property
    def volume_path(self) -> str:
        """The volume as SnapMirror names it at its own cluster."""
        return f"{self.site.svm}:{self.volume_name}"

    @property
    def policy_name(self) -> str:
        """The SnapMirror policy by which ONTAP keeps its snapshots."""
        return f"{POLICY_PREFIX}{self.keep}"

    @property
    def starts(self) -> str:
        """When its transfers start, as a phrase."""
        if self.start == self.Start.SCHEDULE:
            return f"On the schedule {self.cron} (UTC)"
        return self.get_start_display()

    @property
    def fullness(self) -> Fullness | None:
        """How full its volume is.

        Its inodes come from the template's volume, and people are told of them there.
        """
        measured = super().fullness
        return replace(measured, used_inodes=None) if measured is not None else None

    @property
    def gets_snapshots(self) -> bool:
        """Whether snapshots are transferred there, now or later."""
        return self.state not in (*FORMER_HOMES, *ENDED)

    @property
    def way_to_room(self) -> str:
        """What an administrator does about a volume that fills up."""
        return (
            f"A storage administrator enlarges {self.volume_path} at {self.site.name}, "
            "or raises its autosize maximum. Or keep fewer snapshots there."
        )

    @property
    def is_moving(self) -> bool:
        return self.state in MOVING_MIRRORS

    @property
    def has_ended(self) -> bool:
        """Whether it is history: deleted, or the home since."""
        return self.state in ENDED


MOVING_MIRRORS = (
    Mirror.State.CREATING,
    Mirror.State.TRANSFERRING,
    Mirror.State.DELETING,
    Mirror.State.PROMOTING,
    Mirror.State.RETURNING,
    Mirror.State.GIVING_UP,
)
"""An operation is under way; in the others a mirror rests."""


class MirroredSnapshot(models.Model):
    """A template's snapshot at a mirror's site.

    Workspaces can be cloned from it there while it is available. `bytes` and `seconds`
    are those of its last transfer. `compared_files` equal what was published; with 0,
    only ONTAP's version was compared. It is gone once ONTAP keeps newer ones instead.
    What only a former home has is lost when that is re-established.
    """

    class State(models.TextChoices):
        TRANSFERRING = "transferring", "Being transferred"
        AVAILABLE = "available", "Available"
        FAILED = "failed", "Failed"
        GONE = "gone", "No longer there"
        ONLY_THERE = "only-there", "Only there"

    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, related_name="mirrored"
    )
    mirror = models.ForeignKey(
        Mirror, on_delete=models.PROTECT, related_name="snapshots"
    )
    ontap_uuid = models.CharField(max_length=36, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.TRANSFERRING)
    bytes = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    compared_files = models.PositiveSmallIntegerField(default=0)
    arrived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-snapshot__created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("snapshot", "mirror"), name="mirrored_snapshot_once_in_mirror"
            ),
            models.CheckConstraint(
                name="mirrored_snapshot_available_has_arrived",
                condition=~Q(state="available")
                | (Q(arrived_at__isnull=False) & ~Q(ontap_uuid="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.snapshot} at {self.mirror.site}"

    @property
    def verified_by(self) -> str:
        """What proves an available one where no files were compared."""
        return "Version" if self.state == self.State.AVAILABLE else ""

    @property
    def bytes_per_second(self) -> int | None:
        """The rate of its last transfer; None if nothing was transferred."""
        return int(self.bytes / self.seconds) if self.bytes and self.seconds else None
