"""Splits of clones, and the policy of each site about them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from django.urls import reverse

from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.engine.models import Operation
from provisioner.lib.fullness import URGENT_PERCENT, WARNING_PERCENT
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace


class SplitPolicy(models.Model):
    """Who may split clones at a site besides administrators, and what splits by itself.

    Without one nobody may, and nothing does. With `splits_by_itself`, a workspace is
    split once it is older than `older_than_days` and alone holds a snapshot whose end
    frees at least `pinned_bytes`.
    """

    site = models.OneToOneField(
        Site, on_delete=models.CASCADE, related_name="split_policy"
    )
    owners_may_split = models.BooleanField(
        default=False, help_text="Owners may split their own workspaces."
    )
    splits_by_itself = models.BooleanField(default=False)
    older_than_days = models.PositiveIntegerField(default=30)
    pinned_bytes = models.BigIntegerField(default=100 << 30)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="split_policy_has_limits",
                condition=Q(older_than_days__gte=1, pinned_bytes__gte=1),
            ),
        )

    def __str__(self) -> str:
        return f"Splits at {self.site}"


class SnapshotSize(models.Model):
    """The space of a snapshot at its template's site, as last measured.

    `reclaimable_bytes` is what deleting it would free, None where ONTAP does not say.
    """

    snapshot = models.OneToOneField(
        Snapshot, on_delete=models.CASCADE, related_name="size"
    )
    size_bytes = models.BigIntegerField()
    reclaimable_bytes = models.BigIntegerField(null=True, blank=True)
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"Size of {self.snapshot}"

    @property
    def frees_bytes(self) -> int:
        """What deleting the snapshot frees, at most."""
        if self.reclaimable_bytes is None:
            return self.size_bytes
        return self.reclaimable_bytes


class OwnBytesDay(models.Model):
    """What a workspace had of its own on a day in UTC, as last measured."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="own_bytes_days"
    )
    day = models.DateField()
    own_bytes = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("workspace", "day"), name="own_bytes_day_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.workspace} on {self.day}"


_NUMBER_OF_SUBJECTS = models.Func(
    *("workspace", "template", "mirror", "workspacecopy"),
    function="num_nonnulls",
    output_field=models.IntegerField(),
)


class FillingVolume(models.Model):
    """A volume that fills up: people were told of this level, in percent.

    There is no row for a volume that has room.
    """

    workspace = models.OneToOneField(
        Workspace,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="filling",
    )
    template = models.OneToOneField(
        Template,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="filling",
    )
    mirror = models.OneToOneField(
        Mirror,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="filling",
    )
    workspacecopy = models.OneToOneField(
        WorkspaceCopy,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="filling",
    )
    level = models.PositiveSmallIntegerField(
        choices=[(WARNING_PERCENT, "fills up"), (URGENT_PERCENT, "nearly full")]
    )
    crossed_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="filling_volume_is_of_one_thing",
                condition=Exact(_NUMBER_OF_SUBJECTS, 1),
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject}: {self.level} %"

    @property
    def subject(self) -> Workspace | Template | Mirror | WorkspaceCopy:
        found = self.workspace or self.template or self.mirror or self.workspacecopy
        assert found is not None
        return found

    @property
    def kind(self) -> str:
        if self.workspacecopy is not None:
            return "copy"
        return self.subject._meta.model_name or ""

    @property
    def url(self) -> str:
        """The page of what has the volume; that of a copy is its workspace's."""
        if self.workspacecopy is not None:
            return reverse("workspace-detail", args=[self.workspacecopy.workspace_id])
        return reverse(f"{self.kind}-detail", args=[self.subject.pk])

    @property
    def sentence(self) -> str:
        """How full it is, as last measured."""
        fullness = self.subject.fullness
        return fullness.sentence if fullness is not None else ""


class Growth(models.Model):
    """A volume of a workspace that ONTAP is asked to grow, until that is recorded.

    It is written before ONTAP is asked: after a lost reply the next measurement says
    whether the volume grew.
    """

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, related_name="growth"
    )
    from_bytes = models.BigIntegerField()
    to_bytes = models.BigIntegerField()
    percent = models.PositiveIntegerField(help_text="How full it was.")

    def __str__(self) -> str:
        return f"Growth of {self.workspace}"


class Split(models.Model):
    """A split of a workspace's clone, as one operation asked for it.

    The state is the operation's. `estimate_bytes` is what ONTAP said at its start that
    it would copy, None until the operation has asked. `seconds` is how long it took,
    None unless it reached its end.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="splits"
    )
    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, related_name="split"
    )
    estimate_bytes = models.BigIntegerField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                name="split_that_ended_has_estimate",
                condition=Q(seconds=None) | Q(estimate_bytes__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Split of {self.workspace}"
