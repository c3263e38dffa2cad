"""Deduplication of volumes by plan, and what storage saves by day."""

from __future__ import annotations

import datetime as dt

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.catalog.models import Template
from provisioner.lib import schedules
from provisioner.sites.models import Site


class DedupePlan(models.Model):
    """Which volumes of a site are deduplicated in the background, and when.

    A window begins at the times of `cron` (five fields, UTC) and lasts `minutes`. With
    `waits_for_quiet` nothing is deduplicated while a template of the site is built or a
    request at it waits. `ontap_policy` is the policy of ONTAP that runs the plan, "" if
    Cloneyard starts and stops each run. `status` says what came of the last check.
    """

    site = models.OneToOneField(
        Site, on_delete=models.CASCADE, related_name="dedupe_plan"
    )
    is_on = models.BooleanField(default=False)
    covers_templates = models.BooleanField(default=True)
    covers_mirrors = models.BooleanField(default=False)
    more_volumes = models.TextField(
        blank=True, help_text="Names of further volumes of the SVM, one a line."
    )
    cron = models.CharField(max_length=schedules.LONGEST, default="0 22 * * *")
    minutes = models.PositiveIntegerField(default=360)
    waits_for_quiet = models.BooleanField(default=True)
    ontap_policy = models.CharField(max_length=200, blank=True, editable=False)
    status = models.TextField(blank=True, editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="dedupe_plan_has_window", condition=~Q(cron="") & Q(minutes__gte=1)
            ),
        )

    def __str__(self) -> str:
        return f"Deduplication at {self.site}"

    @property
    def names(self) -> list[str]:
        """The names of further volumes."""
        return self.more_volumes.split()

    def window_at(self, now: dt.datetime) -> dt.datetime | None:
        """Return the begin of the window that is open, None outside of one."""
        begin = schedules.last_time(self.cron, now=now)
        if begin is None or now >= self.end_of(begin):
            return None
        return begin

    def end_of(self, window: dt.datetime) -> dt.datetime:
        return window + dt.timedelta(minutes=self.minutes)


class DedupeVolume(models.Model):
    """A volume that a plan may deduplicate, as last seen in ONTAP.

    With `is_inline` ONTAP deduplicates what is written, before it is stored, as
    all-flash systems do: no plan touches it. A volume that is gone keeps its runs.
    """

    class Kind(models.TextChoices):
        TEMPLATE = "template", "Template"
        MIRROR = "mirror", "Mirror"
        OTHER = "other", "Other volume"

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="dedupe_volumes"
    )
    ontap_uuid = models.CharField(max_length=36)
    name = models.CharField(max_length=203)
    kind = models.CharField(max_length=8, choices=Kind)
    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, null=True, related_name="dedupe_volumes"
    )
    is_there = models.BooleanField(default=True)
    is_inline = models.BooleanField(default=False)
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ("site__name", "name", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "ontap_uuid"), name="dedupe_volume_once_at_a_site"
            ),
        )

    def __str__(self) -> str:
        return self.name


class DedupeRun(models.Model):
    """One run of ONTAP's scanner on a volume, in the window that began at `window_at`.

    The row is written before ONTAP is asked to start: `previous_began_at` is when the
    scanner had begun last by then, so that a lost answer is told from no start. Bytes
    of before and after are the savings of deduplication, and what the volume took.
    """

    class State(models.TextChoices):
        REQUESTED = "requested", "Being started"
        RUNNING = "running", "Running"
        STOPPED = "stopped", "Stopped"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    volume = models.ForeignKey(
        DedupeVolume, on_delete=models.CASCADE, related_name="runs"
    )
    window_at = models.DateTimeField()
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    is_ontaps_own = models.BooleanField(
        default=False, help_text="A policy of ONTAP started it."
    )
    previous_began_at = models.DateTimeField(null=True)
    saved_before_bytes = models.BigIntegerField()
    took_before_bytes = models.BigIntegerField(null=True)
    saved_after_bytes = models.BigIntegerField(null=True)
    took_after_bytes = models.BigIntegerField(null=True)
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("volume",),
                condition=Q(state__in=("requested", "running")),
                name="dedupe_run_one_open_of_a_volume",
            ),
            models.CheckConstraint(
                name="dedupe_run_ended_has_ended_at",
                condition=Q(state__in=("requested", "running"), ended_at__isnull=True)
                | Q(state__in=("stopped", "done", "failed"), ended_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Deduplication of {self.volume}"


class ReductionDay(models.Model):
    """What a site, a template or a volume held and took on a day in UTC, as last
    measured.

    `kind` says which columns are set: a site is the aggregates that its volumes are in,
    with all that is in those; a template is its volume with its snapshots and clones at
    the site; a volume is one that a plan may deduplicate, with its snapshots. The parts
    of the saving are None where ONTAP does not tell them apart. Only of a site are the
    ratios without snapshots, and `within_ratio` without FlexClones as well.
    """

    class Kind(models.TextChoices):
        SITE = "site", "Site"
        TEMPLATE = "template", "Template"
        VOLUME = "volume", "Volume"

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="reduction_days"
    )
    kind = models.CharField(max_length=8, choices=Kind)
    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, null=True, related_name="reduction_days"
    )
    volume = models.ForeignKey(
        DedupeVolume, on_delete=models.CASCADE, null=True, related_name="days"
    )
    day = models.DateField()
    logical_bytes = models.BigIntegerField()
    physical_bytes = models.BigIntegerField()
    provisioned_bytes = models.BigIntegerField()
    full_percent = models.FloatField(null=True)
    by_snapshots_bytes = models.BigIntegerField(null=True)
    by_clones_bytes = models.BigIntegerField(null=True)
    by_deduplication_bytes = models.BigIntegerField(null=True)
    by_compression_bytes = models.BigIntegerField(null=True)
    without_snapshots_ratio = models.FloatField(null=True)
    within_ratio = models.FloatField(null=True)

    class Meta:
        ordering = ("-day", "site__name", "kind", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "day", "kind", "template", "volume"),
                nulls_distinct=False,
                name="reduction_day_once",
            ),
            models.CheckConstraint(
                name="reduction_day_kind_has_its_row",
                condition=Q(kind="site", template=None, volume=None)
                | Q(kind="template", template__isnull=False, volume=None)
                | Q(kind="volume", volume__isnull=False, template=None),
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} on {self.day}"

    @property
    def subject(self) -> str:
        """The name of what it is about."""
        return str(self.volume or self.template or self.site)

    @property
    def is_part(self) -> bool:
        """Whether it is about a part of the site."""
        return self.kind != self.Kind.SITE

    @property
    def reduction(self) -> float | None:
        """Logical to physical: 3.4 means 3.4:1. None while nothing is taken."""
        return _ratio(self.logical_bytes, self.physical_bytes)

    @property
    def overcommitment(self) -> float | None:
        """Provisioned to physical, likewise."""
        return _ratio(self.provisioned_bytes, self.physical_bytes)


def _ratio(bytes_: int, physical_bytes: int) -> float | None:
    return round(bytes_ / physical_bytes, 2) if physical_bytes else None
