"""Serializers of probes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, Text
from provisioner.probes.commands import LONGEST, MOST
from provisioner.probes.models import ProbePlan, ProbeTime

_NOT_MEASURED = "null: nothing was measured."


class ProbePlanSerializer(serializers.ModelSerializer[ProbePlan]):
    """The commands that are timed at a server every 15 minutes."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField()
    commands = serializers.ListField(source="lines", child=serializers.CharField())

    class Meta:
        model = ProbePlan
        fields = ("server", "server_id", "is_on", "commands")
        read_only_fields = fields


class ProbePlanChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    is_on = Flag(required=False)
    commands = Text(
        required=False,
        max_length=MOST * LONGEST,
        help_text="One a line, without p4: read-only ones alone.",
    )


class ProbeTimeSerializer(serializers.ModelSerializer[ProbeTime]):
    """How long a command took in one round."""

    server = serializers.CharField(source="run.server.name")
    at = serializers.DateTimeField(source="run.at")
    host = serializers.CharField(source="run.host")
    lapse_seconds = serializers.FloatField(
        source="run.lapse_seconds",
        allow_null=True,
        help_text="Of the whole round; null: one of its commands failed.",
    )
    seconds = serializers.FloatField(allow_null=True, help_text="null: an error.")

    class Meta:
        model = ProbeTime
        fields = (
            "id",
            "server",
            "at",
            "host",
            "command",
            "seconds",
            "error",
            "lapse_seconds",
        )
        read_only_fields = fields


class ProbeTimeQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="run__server__name", required=False, help_text="Its name."
    )
    command = serializers.CharField(required=False, help_text="As in the plan.")
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    failed = serializers.BooleanField(required=False, help_text="Errors alone.")


class ProbeWeekSerializer(serializers.Serializer[Any]):
    """What a command took in a week, in seconds."""

    server = serializers.CharField()
    begin = serializers.DateField(help_text="A Monday, in UTC.")
    command = serializers.CharField(
        help_text="“First to last” is all commands of a round together."
    )
    rounds = serializers.IntegerField(help_text="Those that were measured.")
    gaps = serializers.IntegerField(
        help_text="Rounds that there were not: a pause, an outage, no host worker."
    )
    failed = serializers.IntegerField(help_text="Those that ended with an error.")
    average = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    median = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    maximum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    minimum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
