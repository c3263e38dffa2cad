"""Disaster drills: a server brought up from its last replicated copy elsewhere."""

from __future__ import annotations

import datetime as dt

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.lib import schedules
from provisioner.sandboxes.models import Sandbox, SandboxPlan
from provisioner.sites.values import ontap_name_validator

MONTHLY = "0 4 1 * *"
MOST_HOURS = 24 * 366


class DrillPlan(SandboxPlan):
    """When a server is brought up on a host at another site, from which volumes.

    SnapMirror fills these volumes; whoever administers it has set that up. A copy older
    than `oldest_hours` is a finding.
    """

    PURPOSE = Sandbox.Purpose.DRILL

    cron = models.CharField(max_length=schedules.LONGEST, default=MONTHLY)
    oldest_hours = models.PositiveSmallIntegerField(
        default=24, validators=[MinValueValidator(1), MaxValueValidator(MOST_HOURS)]
    )

    class Meta(SandboxPlan.Meta):
        pass

    def __str__(self) -> str:
        return f"Drills of {self.server}"

    @property
    def replicas(self) -> dict[str, str]:
        """What SnapMirror fills, by the names of the server's volumes."""
        if self._state.adding:
            return {}
        return {each.source: each.replica for each in self.volumes.all()}


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
    def outcome(self) -> str:
        """What came of it, as a word or two."""
        if self.ended_at is None:
            return "Running" if self.is_running else "Stopped"
        if self.trouble:
            return "Failed"
        return "Old copy" if self.finding else "Passed"

    @property
    def is_wrong(self) -> bool:
        """Whether it failed, or found something."""
        return bool(self.trouble or self.finding)

    @property
    def lost(self) -> dt.timedelta | None:
        """What would have been lost: the age of the copy (RPO)."""
        return None if self.copy_of is None else self.requested_at - self.copy_of

    @property
    def took(self) -> dt.timedelta | None:
        """How long it took until the server answered (RTO)."""
        answered_at = self.answered_at
        return None if answered_at is None else answered_at - self.requested_at

    @property
    def lost_seconds(self) -> float | None:
        return None if self.lost is None else self.lost.total_seconds()

    @property
    def took_seconds(self) -> float | None:
        return None if self.took is None else self.took.total_seconds()
