"""Checkpoints and verified archives, with their plans: they outlive sandboxes."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.lib import schedules
from provisioner.lib.fields import EvidenceField, NameField
from provisioner.sandboxes.models import Sandbox, SandboxPlan
from provisioner.sites.values import check_file_path

MOST_DAYS, MOST_WEEKS = 366, 520
MOST_HOURS = 24 * MOST_DAYS
WEEKLY = "0 3 * * 6"
MOST_LISTED = 10_000
"""How many damaged revisions of a depot are listed; all are counted."""


class CheckpointPlan(SandboxPlan):
    """Where checkpoints of a server are kept, for how long, and when they are made.

    `directory` is a path on `host`. Of the last `keep_daily` days and `keep_weekly`
    weeks that have a proven checkpoint, the newest of each is kept. If the newest of
    all is older than `oldest_hours`, administrators are told, once: at `late_at`.
    """

    PURPOSE = Sandbox.Purpose.CHECKPOINT

    directory = models.CharField(max_length=255, validators=[check_file_path])
    cron = models.CharField(max_length=schedules.LONGEST, default="30 2 * * *")
    keep_daily = models.PositiveSmallIntegerField(
        default=7, validators=[MinValueValidator(1), MaxValueValidator(MOST_DAYS)]
    )
    keep_weekly = models.PositiveSmallIntegerField(
        default=4, validators=[MaxValueValidator(MOST_WEEKS)]
    )
    oldest_hours = models.PositiveSmallIntegerField(
        default=36, validators=[MinValueValidator(1), MaxValueValidator(MOST_HOURS)]
    )
    late_at = models.DateTimeField(null=True, editable=False)

    class Meta(SandboxPlan.Meta):
        constraints: ClassVar[tuple[models.BaseConstraint, ...]] = (
            *SandboxPlan.Meta.constraints,
            models.CheckConstraint(
                name="checkpoint_plan_keeps_one", condition=Q(keep_daily__gte=1)
            ),
        )

    def __str__(self) -> str:
        return f"Checkpoints of {self.server}"


class VerificationPlan(SandboxPlan):
    """When the archives of a server are verified, and whether shelved files are, too.

    A verification without a plan goes by what the plan of its server says.
    """

    PURPOSE = Sandbox.Purpose.VERIFY

    has_shelved = models.BooleanField(default=False)

    cron = models.CharField(max_length=schedules.LONGEST, default=WEEKLY)

    class Meta(SandboxPlan.Meta):
        pass

    def __str__(self) -> str:
        return f"Verifications of {self.server}"


class Checkpoint(models.Model):
    """A checkpoint that is or was kept on the host of its sandbox.

    `change` is the highest submitted change, `journal` the number of the journal that
    continues it; None if it says none. `sha256` is of the file, `md5` of its plain
    text. `tables` has the number of records of each table. It is proven if its replay
    elsewhere had the same records; otherwise `remark` says why not.
    """

    sandbox = models.OneToOneField(
        Sandbox, on_delete=models.PROTECT, related_name="checkpoint"
    )
    path = models.CharField(max_length=512)
    change = models.BigIntegerField(null=True)
    journal = models.BigIntegerField(null=True)
    size_bytes = models.BigIntegerField()
    plain_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    md5 = models.CharField(max_length=32)
    dump_seconds = models.FloatField()
    replay_seconds = models.FloatField()
    tables = EvidenceField(default=dict)
    is_proven = models.BooleanField()
    remark = models.TextField(blank=True)
    made_at = models.DateTimeField(db_default=Now(), editable=False)
    removed_at = models.DateTimeField(null=True, blank=True)
    removed_because = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("-made_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="checkpoint_is_proven_or_says_why_not",
                condition=Q(is_proven=True, remark="")
                | (Q(is_proven=False) & ~Q(remark="")),
            ),
            models.CheckConstraint(
                name="checkpoint_removed_for_a_reason",
                condition=Q(removed_at__isnull=True, removed_because="")
                | (Q(removed_at__isnull=False) & ~Q(removed_because="")),
            ),
        )

    def __str__(self) -> str:
        return self.path

    @property
    def records(self) -> int:
        """The number of records of all tables."""
        return sum(self.tables.values())


class Verification(models.Model):
    """The archives of a sandbox, read and compared with their digests."""

    sandbox = models.OneToOneField(
        Sandbox, on_delete=models.PROTECT, related_name="verification"
    )
    began_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-began_at", "-pk")

    def __str__(self) -> str:
        return f"Archives of {self.sandbox}"


class VerifiedDepot(models.Model):
    """A depot of a verification: what is lost or damaged in it, and how long it took.

    `seconds` is None before its end, and for one that is left out: then `left_out` says
    why. Shelved files count apart; `shelved_seconds` is None if they were not read.
    """

    verification = models.ForeignKey(
        Verification, on_delete=models.CASCADE, related_name="depots"
    )
    name = NameField()
    kind = models.CharField(max_length=40)
    seconds = models.FloatField(null=True)
    bad = models.BigIntegerField(default=0)
    missing = models.BigIntegerField(default=0)
    shelved_seconds = models.FloatField(null=True)
    shelved_bad = models.BigIntegerField(default=0)
    shelved_missing = models.BigIntegerField(default=0)
    left_out = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("verification", "name"), name="verified_depot_once"
            ),
            models.CheckConstraint(
                name="verified_depot_is_verified_or_left_out",
                condition=Q(left_out="") | Q(seconds__isnull=True, bad=0, missing=0),
            ),
            models.CheckConstraint(
                name="verified_depot_shelved_after_revisions",
                condition=Q(seconds__isnull=False)
                | Q(shelved_seconds__isnull=True, shelved_bad=0, shelved_missing=0),
            ),
        )

    def __str__(self) -> str:
        return f"//{self.name}"

    @property
    def damaged_number(self) -> int:
        return self.bad + self.missing + self.shelved_bad + self.shelved_missing

    @property
    def listed(self) -> int:
        """How many of its damaged revisions and shelved files are listed."""
        shelved = self.shelved_bad + self.shelved_missing
        return min(self.bad + self.missing, MOST_LISTED) + min(shelved, MOST_LISTED)


class DamagedFile(models.Model):
    """A revision whose content is lost, or is not what was submitted.

    `revision` None: a file that is shelved in `change`.
    """

    class Status(models.TextChoices):
        BAD = "bad", "Damaged"
        MISSING = "missing", "Lost"

    depot = models.ForeignKey(
        VerifiedDepot, on_delete=models.CASCADE, related_name="damaged"
    )
    path = NameField()
    revision = models.PositiveIntegerField(null=True)
    change = models.BigIntegerField()
    status = models.CharField(max_length=8, choices=Status)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        if self.revision is None:
            return f"{self.path}@={self.change}"
        return f"{self.path}#{self.revision}"
