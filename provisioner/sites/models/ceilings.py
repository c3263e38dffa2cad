"""Ceilings for the traffic of a site's volumes, by what they are for."""

from __future__ import annotations

import re

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from provisioner.lib.prepared import Prepared
from provisioner.sites.models.sites import Site

MOST_IOPS, MOST_MBPS = 10_000_000, 1_000_000
LONGEST_POLICY_NAME = 127


class Ceiling(models.Model):
    """The most traffic that volumes of one purpose may cause at a site.

    An ONTAP QoS policy applies it. `kept_as` is that policy's name once it is in ONTAP.
    Without limits the ceiling is being removed. `volumes` are below it, and
    `at_ceiling` of them reached it in ONTAP's last sample, both as of `kept_at`.
    """

    class Purpose(models.TextChoices):
        TEMPLATES = "templates", "Templates and their builds"
        BUILDS = "builds", "Workspaces for builds and CI"
        DEVELOPMENT = "development", "Workspaces for development"

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="ceilings")
    purpose = models.CharField(max_length=16, choices=Purpose)
    max_iops = models.PositiveIntegerField(
        "IOPS",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_IOPS)],
    )
    max_mbps = models.PositiveIntegerField(
        "MB/s",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_MBPS)],
    )
    is_shared = models.BooleanField(default=False)
    kept_as = models.CharField(max_length=LONGEST_POLICY_NAME, blank=True)
    volumes = models.PositiveIntegerField(default=0)
    at_ceiling = models.PositiveIntegerField(default=0)
    kept_at = models.DateTimeField(null=True, blank=True)
    status_message = models.TextField(
        blank=True, help_text="Why it could not be applied last time."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("site", "purpose"), name="ceiling_once_for_a_purpose"
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_purpose_display()} at {self.site}"

    @property
    def has_limits(self) -> bool:
        return self.max_iops is not None or self.max_mbps is not None

    @property
    def policy_name(self) -> str:
        return policy_name(self.site, self.purpose, is_shared=self.is_shared)


def policy_name(site: Site, purpose: str, *, is_shared: bool) -> str:
    """Return the name of a ceiling's QoS policy.

    ONTAP cannot change whether volumes share a policy, so each way has its own.
    """
    way = "shared" if is_shared else "each"
    name = f"{site.export_policy}-{site.name}-{purpose}-{way}"
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)[-LONGEST_POLICY_NAME:]


def qos_policy_for(site: Site, purpose: str) -> str:
    """Return the QoS policy for new volumes of a purpose, "" for none."""
    kept = _KEPT.rows(site.pk, purpose)
    return next((row.kept_as for row in kept if row.has_limits), "")


_KEPT = Prepared(
    lambda site_id, purpose: Ceiling.objects.filter(
        site=site_id, purpose=purpose
    ).order_by(),
    values=2,
    keeps_plan=True,
)
