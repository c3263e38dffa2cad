"""The capacity of sites, as last measured by a worker."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Greatest

from provisioner.gateways.ontap.types import most_inodes
from provisioner.lib.fullness import Fullness
from provisioner.sites.models.sites import Site


class SiteCapacity(models.Model):
    """The site's own aggregate and its SVM, so that pages need not ask ONTAP.

    Sizes in bytes; those of the SVM's other aggregates are in `AggregateSpace`.
    `volumes` counts all volumes of the SVM, not only ours;
    `provisioned_bytes` is the sum of their sizes, which may exceed the aggregate.
    """

    site = models.OneToOneField(Site, on_delete=models.CASCADE, related_name="capacity")
    ontap_version = models.CharField(max_length=100, blank=True)
    aggregate_size_bytes = models.BigIntegerField(default=0)
    aggregate_used_bytes = models.BigIntegerField(default=0)
    aggregate_available_bytes = models.BigIntegerField(default=0)
    logical_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The logical size of all volumes, shared blocks counted for each.",
    )
    saved_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The part of it that takes no blocks of its own.",
    )
    saved_within_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The part of it that deduplication, compression and compaction save.",
    )
    volumes = models.PositiveIntegerField(default=0)
    volumes_of_others = models.PositiveIntegerField(
        default=0, help_text="Volumes that Cloneyard has no row of."
    )
    max_volumes = models.PositiveIntegerField(
        null=True, blank=True, help_text="The SVM's limit. Empty: no limit."
    )
    provisioned_bytes = models.BigIntegerField(default=0)
    measured_at = models.DateTimeField(null=True, blank=True)
    status_message = models.TextField(
        blank=True, help_text="Why the last attempt to measure failed."
    )
    failing_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The first failed attempt since the last successful one.",
    )

    class Meta:
        verbose_name_plural = "site capacities"

    def __str__(self) -> str:
        return f"Capacity of {self.site}"


class AggregateSpace(models.Model):
    """An aggregate that the SVM of a site may use, as last measured. Sizes in bytes.

    `provisioned_bytes` is how far the SVM's volumes in it may grow. `node_volumes`
    counts the volumes of all SVMs on its node, None where ONTAP does not say.
    """

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="aggregates")
    name = models.CharField(max_length=255)
    node = models.CharField(max_length=255, blank=True)
    size_bytes = models.BigIntegerField()
    available_bytes = models.BigIntegerField()
    provisioned_bytes = models.BigIntegerField(default=0)
    node_volumes = models.PositiveIntegerField(null=True, blank=True)
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
    def used_bytes(self) -> int:
        return self.size_bytes - self.available_bytes

    @property
    def used_percent(self) -> int:
        return 100 * self.used_bytes // max(1, self.size_bytes)

    @property
    def room_bytes(self) -> int:
        """What volumes may take of it: the site keeps a part free."""
        kept = self.size_bytes * self.site.free_percent // 100
        return max(self.available_bytes - kept, 0)


class CapacityDay(models.Model):
    """The capacity of a site at the end of a day in UTC, as last measured.

    One row per site and day, as long as limits/sweeps.py keeps them. Sizes in bytes;
    None if ONTAP did not report them.
    """

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="capacity_days"
    )
    day = models.DateField()
    size_bytes = models.BigIntegerField(null=True)
    used_bytes = models.BigIntegerField(null=True)
    logical_bytes = models.BigIntegerField(null=True)
    saved_bytes = models.BigIntegerField(null=True)
    clones = models.PositiveIntegerField()
    volumes = models.PositiveIntegerField(
        null=True, help_text="All volumes of the SVM, including others'."
    )
    provisioned_bytes = models.BigIntegerField(null=True)

    class Meta:
        ordering = ("day", "site")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "day"), name="capacity_day_once_for_a_site"
            ),
        )

    def __str__(self) -> str:
        return f"{self.site} on {self.day}"


class AggregateDay(models.Model):
    """One of a site's other aggregates at the end of a day in UTC, as last measured.

    `CapacityDay` has the site's own one. Sizes in bytes; rows are kept as long as
    those.
    """

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="aggregate_days"
    )
    name = models.CharField(max_length=255)
    day = models.DateField()
    size_bytes = models.BigIntegerField()
    used_bytes = models.BigIntegerField()
    provisioned_bytes = models.BigIntegerField()

    class Meta:
        ordering = ("day", "site", "name")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "name", "day"), name="aggregate_day_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} at {self.site} on {self.day}"


_MOST_BYTES = Greatest("actual_size_bytes", "grows_to_bytes")
"""The size of a volume, or that up to which ONTAP grows it. NULL counts as nothing."""


class MeasuredVolume(models.Model):
    """What ONTAP last reported of a volume; None, or "", before it was measured."""

    aggregate = models.CharField(
        max_length=255, blank=True, help_text="The aggregate that its volume is in."
    )
    actual_size_bytes = models.BigIntegerField(
        null=True, blank=True, help_text="The size of its volume, as ONTAP reports it."
    )
    grows_to_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The size up to which ONTAP grows its volume by itself; null: it "
        "does not.",
    )
    used_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The space used by its volume, as ONTAP reports it.",
    )
    snapshot_reserve_percent = models.PositiveSmallIntegerField(
        default=0, help_text="What its volume sets apart for snapshots, of its size."
    )
    file_bytes = models.GeneratedField(
        expression=_MOST_BYTES - _MOST_BYTES * F("snapshot_reserve_percent") / 100,
        output_field=models.BigIntegerField(null=True),
        db_persist=True,
        help_text="What files can take of its volume: the size that it has, or that "
        "ONTAP grows it to, without the reserve.",
    )
    snapshot_bytes = models.BigIntegerField(
        null=True, blank=True, help_text="What only the snapshots of its volume hold."
    )
    used_inodes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="Files and directories in it, as ONTAP reports them.",
    )
    max_inodes = models.BigIntegerField(
        null=True, blank=True, help_text="The inode limit of its volume."
    )

    class Meta:
        abstract = True

    @staticmethod
    def used_at_least(percent: int) -> Q:
        """Return what finds volumes whose files take so much of what they can."""
        return Q(used_bytes__gte=F("file_bytes") * (percent / 100))

    @property
    def fullness(self) -> Fullness | None:
        """How full its volume is, None before it was measured.

        One that ONTAP grows by itself is full at its maximum. Its inodes do not grow
        before its size does.
        """
        if self.used_bytes is None or self.actual_size_bytes is None:
            return None
        size = max(self.actual_size_bytes, self.grows_to_bytes or 0)
        return Fullness(
            used_bytes=self.used_bytes,
            file_bytes=size - size * self.snapshot_reserve_percent // 100,
            size_bytes=size,
            used_inodes=self.used_inodes,
            most_inodes=most_inodes(self.actual_size_bytes),
        )
