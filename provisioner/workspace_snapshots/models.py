"""Snapshots that ONTAP takes of workspaces by itself, and the policies for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.engine.models import Parameters
from provisioner.sites.models import Site
from provisioner.workspaces.models import ReadClient, Workspace

MOST_HOURLY, MOST_DAILY = 168, 365
MOST_PERCENT = 100
BEFORE_RESTORE = "cloneyard-ws-before-restore."
"""How snapshots of what a restore replaced begin. Sweeps follow them like others."""

KEPT_BEFORE_RESTORES = 5
"""How many of them a workspace keeps; ONTAP's policies do not delete them.

The one from before the first attempt stays besides until an attempt has succeeded.
"""

PREFIX = "cloneyard-ws-"
"""How the names of these snapshots begin, before ONTAP's schedule and the time."""

NO_POLICY = "none"
"""ONTAP's policy without schedules."""


@dataclass(frozen=True, kw_only=True)
class SnapshotParameters(Parameters):
    """The snapshot of an operation by its name, and what is taken back from it.

    `paths` are those that an earlier operation could not write.
    """

    snapshot: str
    path: str = ""
    paths: Sequence[str] = ()


class SnapshotPolicy(models.Model):
    """How many snapshots ONTAP keeps of the workspaces of a site.

    Of those that fit a workspace, one for its template and purpose counts first, then
    for its template, for its purpose, and for all. Keeping 0 and 0 takes none.
    """

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="snapshot_policies"
    )
    template = models.ForeignKey(
        Template,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="snapshot_policies",
        help_text="Empty: every template.",
    )
    purpose = models.CharField(
        max_length=16,
        choices=Workspace.Purpose,
        blank=True,
        help_text="Empty: every purpose.",
    )
    hourly = models.PositiveSmallIntegerField(default=24)
    daily = models.PositiveSmallIntegerField(default=7)
    max_percent = models.PositiveSmallIntegerField(
        default=0,
        help_text="What snapshots may hold, in percent of their workspace's volume. "
        "0: no limit.",
    )

    class Meta:
        ordering = ("site__name", "template__name", "purpose")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "template", "purpose"),
                nulls_distinct=False,
                name="snapshot_policy_once",
            ),
            models.CheckConstraint(
                name="snapshot_policy_is_bounded",
                condition=Q(
                    hourly__lte=MOST_HOURLY,
                    daily__lte=MOST_DAILY,
                    max_percent__lte=MOST_PERCENT,
                ),
            ),
        )

    def __str__(self) -> str:
        of = f" of {self.template}" if self.template else ""
        return f"Snapshots of workspaces{of} at {self.site}"

    @property
    def keep(self) -> dict[str, int]:
        """How many are kept by ONTAP's schedule; empty: none are taken."""
        kept = {"hourly": self.hourly, "daily": self.daily}
        return {schedule: count for schedule, count in kept.items() if count}

    @property
    def ontap_name(self) -> str:
        """The policy in ONTAP; others that keep the same share it."""
        if not self.keep:
            return NO_POLICY
        return f"cloneyard-ws-h{self.hourly}-d{self.daily}"


class ClientReading(ReadClient):
    """What a workspace's client had when its snapshots were seen."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="client_readings"
    )
    read_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"{self.workspace}, {self.read_at}"


class WorkspaceSnapshot(models.Model):
    """A snapshot of a workspace, as ONTAP lists it.

    `reading` is what its client had: read once the snapshot was seen, minutes after it
    was taken. None: not read yet, or there is no client. `deleted_because` is written
    before ONTAP is asked to delete it, so that a lost reply hides no deletion.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="ontap_snapshots"
    )
    name = models.CharField(max_length=255)
    ontap_uuid = models.CharField(max_length=36)
    taken_at = models.DateTimeField()
    reading = models.ForeignKey(
        ClientReading,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="snapshots",
    )
    deleted_because = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("-taken_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("workspace", "ontap_uuid"), name="workspace_snapshot_once"
            ),
        )

    def __str__(self) -> str:
        return self.name
