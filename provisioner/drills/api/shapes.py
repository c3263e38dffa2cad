"""Serializers of drills and their plans."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number
from provisioner.drills.models import MOST_HOURS, Drill, DrillPlan
from provisioner.sandboxes.api.plans import (
    PLAN_FIELDS,
    PlanSaveSerializer,
    PlanSerializer,
)


class DrillSerializer(serializers.ModelSerializer[Drill]):
    server = serializers.CharField(source="sandbox.perforce_server.name")
    sandbox = serializers.CharField(source="sandbox.name")
    site = serializers.CharField(source="sandbox.site.name")
    host = serializers.CharField(source="sandbox.host.name")
    outcome = serializers.CharField(
        help_text="Running, Stopped, Failed, Old copy or Passed."
    )
    copy_of = serializers.DateTimeField(
        allow_null=True, help_text="The moment of the copy."
    )
    lost_seconds = serializers.FloatField(
        allow_null=True, help_text="How old the copy was when the drill began (RPO)."
    )
    took_seconds = serializers.FloatField(
        allow_null=True, help_text="Until the server answered (RTO)."
    )
    change = serializers.IntegerField(
        allow_null=True, help_text="The last submitted change in the copy."
    )
    trouble = serializers.CharField(help_text="Why it failed.")
    finding = serializers.CharField(help_text="What is wrong although it succeeded.")

    class Meta:
        model = Drill
        fields = (
            "id",
            "server",
            "sandbox",
            "site",
            "host",
            "outcome",
            "requested_at",
            "copy_of",
            "answered_at",
            "ended_at",
            "lost_seconds",
            "took_seconds",
            "change",
            "oldest_hours",
            "trouble",
            "finding",
        )
        read_only_fields = fields


class DrillStartSerializer(serializers.Serializer[Any]):
    server = IdOrName(help_text="A server with a plan of drills.")


class DrillPlanSerializer(PlanSerializer[DrillPlan]):
    replicas = serializers.DictField(
        child=serializers.CharField(),
        help_text="By each volume of the server, the one that SnapMirror fills.",
    )

    class Meta:
        model = DrillPlan
        fields = (*PLAN_FIELDS, "replicas", "oldest_hours")
        read_only_fields = fields


class DrillPlanSaveSerializer(PlanSaveSerializer):
    """Fields that are left out do not change."""

    replicas = serializers.DictField(
        child=serializers.CharField(max_length=203),
        required=False,
        help_text="By each volume of the server, the one that SnapMirror fills.",
    )
    oldest_hours = Number(required=False, min_value=1, max_value=MOST_HOURS)
