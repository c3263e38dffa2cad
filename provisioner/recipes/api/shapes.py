"""Serializers of checkpoints, plans and verifications."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text
from provisioner.recipes.models import (
    MOST_DAYS,
    MOST_HOURS,
    MOST_WEEKS,
    Checkpoint,
    CheckpointPlan,
    DamagedFile,
    Verification,
    VerificationPlan,
    VerifiedDepot,
)
from provisioner.sandboxes.api.plans import (
    PLAN_FIELDS,
    PlanSaveSerializer,
    PlanSerializer,
)


class CheckpointSerializer(serializers.ModelSerializer[Checkpoint]):
    server = serializers.CharField(source="sandbox.perforce_server.name")
    sandbox = serializers.CharField(source="sandbox.name")
    host = serializers.CharField(source="sandbox.host.name")
    release = serializers.CharField(source="sandbox.release")
    taken_at = serializers.DateTimeField(
        source="sandbox.taken_at", help_text="As of when it is."
    )
    change = serializers.IntegerField(
        allow_null=True, help_text="The highest submitted change in it."
    )
    journal = serializers.IntegerField(
        allow_null=True, help_text="The number of the journal that continues it."
    )
    sha256 = serializers.CharField(help_text="Of the compressed file.")
    md5 = serializers.CharField(help_text="Of its plain text, as in the .md5 file.")
    tables = serializers.DictField(
        child=serializers.IntegerField(), help_text="The records of each table."
    )
    is_proven = serializers.BooleanField(
        help_text="Whether its replay elsewhere had the same records."
    )
    remark = serializers.CharField(help_text="Why it is not proven.")

    class Meta:
        model = Checkpoint
        fields = (
            "id",
            "server",
            "sandbox",
            "host",
            "release",
            "path",
            "taken_at",
            "change",
            "journal",
            "size_bytes",
            "plain_bytes",
            "sha256",
            "md5",
            "dump_seconds",
            "replay_seconds",
            "tables",
            "is_proven",
            "remark",
            "made_at",
            "removed_at",
            "removed_because",
        )
        read_only_fields = fields


class CheckpointQuery(serializers.Serializer[Any]):
    server = Text(required=False, max_length=100, help_text="The name of a server.")
    kept = serializers.ChoiceField(required=False, choices=["yes", "no"])


class RecipeStartSerializer(serializers.Serializer[Any]):
    server = IdOrName(help_text="A server with a plan.")


class CheckpointPlanSerializer(PlanSerializer[CheckpointPlan]):
    oldest_hours = serializers.IntegerField(
        help_text="Administrators are told if the newest proven one is older."
    )
    late_at = serializers.DateTimeField(
        allow_null=True, help_text="When they were told; null: it is not too old."
    )

    class Meta:
        model = CheckpointPlan
        fields = (
            *PLAN_FIELDS,
            "directory",
            "keep_daily",
            "keep_weekly",
            "oldest_hours",
            "late_at",
        )
        read_only_fields = fields


class CheckpointPlanSaveSerializer(PlanSaveSerializer):
    """Fields that are left out do not change."""

    directory = Text(
        required=False,
        max_length=255,
        help_text="Where they are kept on the host; its uid may write there.",
    )
    keep_daily = Number(required=False, min_value=1, max_value=MOST_DAYS)
    keep_weekly = Number(required=False, min_value=0, max_value=MOST_WEEKS)
    oldest_hours = Number(required=False, min_value=1, max_value=MOST_HOURS)


class VerificationPlanSerializer(PlanSerializer[VerificationPlan]):
    has_shelved = serializers.BooleanField(
        help_text="Whether shelved files are verified, too."
    )

    class Meta:
        model = VerificationPlan
        fields = (*PLAN_FIELDS, "has_shelved")
        read_only_fields = fields


class VerificationPlanSaveSerializer(PlanSaveSerializer):
    """Fields that are left out do not change."""

    has_shelved = serializers.BooleanField(required=False)


class VerifiedDepotSerializer(serializers.ModelSerializer[VerifiedDepot]):
    seconds = serializers.FloatField(
        allow_null=True, help_text="null: left out, or not verified to its end."
    )
    shelved_seconds = serializers.FloatField(
        allow_null=True, help_text="null: shelved files were not verified."
    )
    left_out = serializers.CharField(help_text="Why it was not verified.")

    class Meta:
        model = VerifiedDepot
        fields = (
            "name",
            "kind",
            "bad",
            "missing",
            "seconds",
            "shelved_bad",
            "shelved_missing",
            "shelved_seconds",
            "left_out",
        )
        read_only_fields = fields


class VerificationSerializer(serializers.ModelSerializer[Verification]):
    server = serializers.CharField(source="sandbox.perforce_server.name")
    sandbox = serializers.CharField(source="sandbox.name")
    taken_at = serializers.DateTimeField(
        source="sandbox.taken_at", allow_null=True, help_text="As of when it is."
    )
    bad = serializers.IntegerField(help_text="Revisions that are damaged.")
    missing = serializers.IntegerField(help_text="Revisions that are lost.")
    shelved_bad = serializers.IntegerField(help_text="Shelved files that are damaged.")
    shelved_missing = serializers.IntegerField(help_text="Shelved files that are lost.")
    depots = VerifiedDepotSerializer(many=True)

    class Meta:
        model = Verification
        fields = (
            "id",
            "server",
            "sandbox",
            "taken_at",
            "began_at",
            "ended_at",
            "bad",
            "missing",
            "shelved_bad",
            "shelved_missing",
            "depots",
        )
        read_only_fields = fields


class DamagedFileSerializer(serializers.ModelSerializer[DamagedFile]):
    depot = serializers.CharField(source="depot.name")
    revision = serializers.IntegerField(
        allow_null=True, help_text="null: it is shelved in the change."
    )

    class Meta:
        model = DamagedFile
        fields = ("depot", "path", "revision", "change", "status")
        read_only_fields = fields
