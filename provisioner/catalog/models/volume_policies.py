"""What ONTAP gives to the volumes of templates besides their size."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from provisioner.catalog.models.templates import Template
from provisioner.sites.models import Site

MOST_AUTOSIZE_PERCENT = 1000
MOST_RESERVE_PERCENT = 90
MOST_HEADROOM_PERCENT = 1000
MOST_GROWTH_PERCENT = 100
MOST_INODES = 2_000_000_000


class VolumePolicy(models.Model):
    """Settings of templates' volumes: a site's defaults, or what one template has.

    What is empty in a template's row is as its site's row says; what is empty there as
    well stays as it is in ONTAP. `autosize_max_percent` is of the template's size.
    New clones for development, or for builds and CI, are larger than their template's
    volume by their headroom. Those for development that are full grow by
    `clone_grow_percent` of their size, never if that is 0 or empty, and up to
    `clone_grow_max_percent` of the template's.
    """

    class Autosize(models.TextChoices):
        OFF = "off", "Off"
        GROW = "grow", "Grow"
        GROW_SHRINK = "grow_shrink", "Grow and shrink"

    class Guarantee(models.TextChoices):
        NONE = "none", "Thin"
        VOLUME = "volume", "Thick"

    class FractionalReserve(models.IntegerChoices):
        NONE = 0, "0 %"
        ALL = 100, "100 %"

    class SecurityStyle(models.TextChoices):
        UNIX = "unix", "UNIX"
        MIXED = "mixed", "Mixed"
        NTFS = "ntfs", "NTFS"

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="volume_policies"
    )
    template = models.OneToOneField(
        Template,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="volume_policy",
    )
    autosize_mode = models.CharField(max_length=11, choices=Autosize, blank=True)
    autosize_max_percent = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(101), MaxValueValidator(MOST_AUTOSIZE_PERCENT)],
    )
    snapshot_reserve_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MOST_RESERVE_PERCENT)]
    )
    guarantee = models.CharField(max_length=6, choices=Guarantee, blank=True)
    fractional_reserve = models.PositiveSmallIntegerField(
        choices=FractionalReserve, null=True, blank=True
    )
    security_style = models.CharField(max_length=5, choices=SecurityStyle, blank=True)
    min_inodes = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_INODES)],
    )
    headroom_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MOST_HEADROOM_PERCENT)]
    )
    build_headroom_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MOST_HEADROOM_PERCENT)]
    )
    clone_grow_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MOST_GROWTH_PERCENT)]
    )
    clone_grow_max_percent = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(101), MaxValueValidator(MOST_AUTOSIZE_PERCENT)],
    )
    applied_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when volumes have these settings. Empty: not yet.",
    )
    status_message = models.TextField(
        blank=True, help_text="Why it could not be applied last time."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("site",),
                condition=Q(template__isnull=True),
                name="volume_policy_one_default_of_a_site",
            ),
        )

    def __str__(self) -> str:
        return f"Volume of {self.template or self.site}"

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings by name, without empty ones."""
        found = {name: getattr(self, name) for name in VOLUME_SETTINGS}
        return {name: value for name, value in found.items() if value not in ("", None)}


VOLUME_SETTINGS = (
    "autosize_mode",
    "autosize_max_percent",
    "snapshot_reserve_percent",
    "guarantee",
    "fractional_reserve",
    "security_style",
    "min_inodes",
    "headroom_percent",
    "build_headroom_percent",
    "clone_grow_percent",
    "clone_grow_max_percent",
)
"""The columns of a VolumePolicy that are settings."""
