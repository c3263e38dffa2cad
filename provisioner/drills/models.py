"""Disaster drills: a server brought up from its last replicated copy elsewhere."""

from __future__ import annotations

import datetime as dt

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.lib import schedules
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.values import ontap_name_validator

MONTHLY = "0 4 1 * *"
MOST_HOURS = 24 * 366


class DrillPlan(models.Model):
    """When a server is brought up at another site, on which host, from which volumes.

    SnapMirror fills these volumes; whoever administers it has set that up. A copy older
    than `oldest_hours` is a finding. `tried_for` is the due time acted on last.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="drill_plan"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    host = models.ForeignKey(SandboxHost, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(P4dVersion, on_delete=models.PROTECT, related_name="+")
    cron = models.CharField(max_length=schedules.LONGEST, default=MONTHLY)
    oldest_hours = models.PositiveSmallIntegerField(
        default=24, validators=[MinValueValidator(1), MaxValueValidator(MOST_HOURS)]
    )
    is_on = models.BooleanField(default=True)
    changed_at = models.DateTimeField(db_default=Now(), editable=False)
    tried_for = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ("server__name",)

    def __str__(self) -> str:
        return f"Drills of {self.server}"


class DrillVolume(models.Model):
    """A volume of the server, and the one at the other site that SnapMirror fills."""

    plan = models.ForeignKey(
        DrillPlan, on_delete=models.CASCADE, related_name="volumes"
    )
    source = models.CharField(max_length=203, validators=[ontap_name_validator])
    replica = models.CharField(max_length=203, validators=[ontap_name_validator])

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("plan", "source"), name="drill_volume_once"
            ),
            models.UniqueConstraint(
                fields=("plan", "replica"), name="drill_replica_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.source}={self.replica}"


class Drill(models.Model):
    """What came of a drill. It outlives its plan and its sandbox's server.

    `copy_of` is the moment of the copy, `answered_at` when the server answered, and
    `change` the last one submitted in it; None where that cannot be read. `trouble` is
    why it failed, and `finding` what is wrong although it succeeded.
    """

    sandbox = models.OneToOneField(
        Sandbox, on_delete=models.PROTECT, related_name="drill"
    )
    oldest_hours = models.PositiveSmallIntegerField()
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    copy_of = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    change = models.BigIntegerField(null=True)
    ended_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)
    finding = models.TextField(blank=True)

    class Meta:
        ordering = ("-requested_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="drill_succeeds_with_an_answer",
                condition=Q(ended_at__isnull=True)
                | ~Q(trouble="")
                | Q(copy_of__isnull=False, answered_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Drill of {self.sandbox.perforce_server}"

    @property
    def is_running(self) -> bool:
        """Whether it goes on; somebody may have retired its sandbox meanwhile."""
        return self.ended_at is None and self.sandbox.state == Sandbox.State.CREATING

    @property
    def lost(self) -> dt.timedelta | None:
        """What would have been lost: the age of the copy (RPO)."""
        return None if self.copy_of is None else self.requested_at - self.copy_of

    @property
    def took(self) -> dt.timedelta | None:
        """How long it took until the server answered (RTO)."""
        answered_at = self.answered_at
        return None if answered_at is None else answered_at - self.requested_at
