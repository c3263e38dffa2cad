"""Serializers of deduplication plans and runs, and of data reduction."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Number, Text
from provisioner.efficiency.models import DedupePlan, DedupeRun, ReductionDay
from provisioner.lib import schedules

_NOT_KNOWN = "null: ONTAP does not say."


class DedupePlanSerializer(serializers.ModelSerializer[DedupePlan]):
    """Which volumes of a site are deduplicated, and when."""

    site = serializers.CharField(source="site.name")
    site_id = serializers.IntegerField()
    ontap_policy = serializers.CharField(
        help_text="The policy of ONTAP that runs the plan; empty: Cloneyard does."
    )
    status = serializers.CharField(help_text="What came of the last check.")

    class Meta:
        model = DedupePlan
        fields = (
            "site",
            "site_id",
            "is_on",
            "covers_templates",
            "covers_mirrors",
            "more_volumes",
            "cron",
            "minutes",
            "waits_for_quiet",
            "ontap_policy",
            "status",
            "checked_at",
        )
        read_only_fields = fields


class DedupePlanChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    is_on = serializers.BooleanField(required=False)
    covers_templates = serializers.BooleanField(required=False)
    covers_mirrors = serializers.BooleanField(required=False)
    more_volumes = Text(
        required=False,
        allow_blank=True,
        max_length=40_000,
        help_text="Names of further volumes of the SVM, one a line.",
    )
    cron = Text(
        required=False,
        max_length=schedules.LONGEST,
        help_text="When windows begin: five fields in UTC, such as 0 22 * * *.",
    )
    minutes = Number(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="How long a window is: 10 minutes to a week.",
    )
    waits_for_quiet = serializers.BooleanField(
        required=False,
        help_text="Only while no template of the site is built and no request waits.",
    )


class DedupeRunSerializer(serializers.ModelSerializer[DedupeRun]):
    """A run on a volume, with its savings before and after."""

    volume = serializers.CharField(source="volume.name")
    site = serializers.CharField(source="volume.site.name")
    template = serializers.CharField(
        source="volume.template.name",
        default=None,
        allow_null=True,
        help_text="Of a template's or a mirror's volume; null: another one.",
    )

    class Meta:
        model = DedupeRun
        fields = (
            "id",
            "volume",
            "site",
            "template",
            "window_at",
            "state",
            "is_ontaps_own",
            "message",
            "saved_before_bytes",
            "saved_after_bytes",
            "took_before_bytes",
            "took_after_bytes",
            "created_at",
            "ended_at",
        )
        read_only_fields = fields


class DedupeRunQuery(serializers.Serializer[Any]):
    site = serializers.CharField(required=False, help_text="A site's name.")
    state = serializers.ChoiceField(choices=DedupeRun.State.choices, required=False)


class ReductionDaySerializer(serializers.ModelSerializer[ReductionDay]):
    """What a site, a template or a volume held and took on a day in UTC."""

    site = serializers.CharField(source="site.name")
    name = serializers.CharField(
        source="subject", help_text="Of the site, template or volume."
    )
    reduction = serializers.FloatField(
        allow_null=True, help_text="Logical to physical: 3.4 means 3.4:1."
    )
    overcommitment = serializers.FloatField(
        allow_null=True, help_text="Provisioned to physical."
    )
    without_snapshots_ratio = serializers.FloatField(
        allow_null=True, help_text=f"Only of sites; {_NOT_KNOWN}"
    )
    within_ratio = serializers.FloatField(
        allow_null=True,
        help_text=f"Without snapshots and FlexClones, only of sites; {_NOT_KNOWN}",
    )
    by_compression_bytes = serializers.IntegerField(
        allow_null=True, help_text=f"Compaction included. {_NOT_KNOWN}"
    )

    class Meta:
        model = ReductionDay
        fields = (
            "day",
            "site",
            "kind",
            "name",
            "logical_bytes",
            "physical_bytes",
            "provisioned_bytes",
            "full_percent",
            "reduction",
            "overcommitment",
            "without_snapshots_ratio",
            "within_ratio",
            "by_snapshots_bytes",
            "by_clones_bytes",
            "by_deduplication_bytes",
            "by_compression_bytes",
        )
        read_only_fields = fields


class ReductionDayQuery(serializers.Serializer[Any]):
    site = serializers.CharField(required=False, help_text="A site's name.")
    kind = serializers.ChoiceField(choices=ReductionDay.Kind.choices, required=False)
    day = serializers.DateField(required=False, help_text="In UTC.")
