"""Serializers of probes, moments and comparisons."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, Text
from provisioner.lib.comparisons import Outcome
from provisioner.probes.actions import MOST_PEOPLE
from provisioner.probes.commands import LONGEST, MOST
from provisioner.probes.comparing import MOST_DAYS, SOURCES
from provisioner.probes.models import (
    LONGEST_LABEL,
    LONGEST_NOTE,
    Moment,
    ProbePlan,
    ProbeRun,
    ProbeTime,
    ReportMail,
)
from provisioner.probes.queries import Round
from provisioner.sites.models import PerforceServer

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
        help_text="One a line, without p4. Only read-only ones.",
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
    failed = serializers.BooleanField(
        required=False,
        help_text="true: only errors; false: only what was measured.",
    )


class ProbeRoundSerializer(serializers.ModelSerializer[ProbeRun]):
    """A round of a server's commands, or why there was none."""

    server = serializers.CharField(source="server.name")
    lapse_seconds = serializers.FloatField(
        allow_null=True, help_text="null: a gap, or one of its commands failed."
    )
    change = serializers.IntegerField(
        allow_null=True, help_text="The newest submitted change; null: a gap."
    )
    gap = serializers.CharField(help_text="Why nothing was measured, else empty.")

    class Meta:
        model = ProbeRun
        fields = ("id", "server", "at", "host", "lapse_seconds", "change", "gap")
        read_only_fields = fields


class ProbeRoundQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="server__name", required=False, help_text="Its name."
    )
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    outcome = serializers.ChoiceField(
        choices=[(each.value, each.value) for each in Round], required=False
    )


class ProbeWeekSerializer(serializers.Serializer[Any]):
    """What a command took in a week, in seconds."""

    server = serializers.CharField(source="server.name")
    begin = serializers.DateField(help_text="A Monday, in UTC.")
    command = serializers.CharField(
        help_text="“First to last” is all commands of a round together."
    )
    rounds = serializers.IntegerField(help_text="Those that were measured.")
    gaps = serializers.IntegerField(
        help_text="Rounds that were missed: a pause, an outage, no host worker."
    )
    failed = serializers.IntegerField(help_text="Those that ended with an error.")
    average = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    median = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    maximum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    minimum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)


class MomentSerializer(serializers.ModelSerializer[Moment]):
    """When something was changed at a server."""

    server = serializers.CharField(source="server.name")
    created_by = serializers.CharField(source="created_by.username")

    class Meta:
        model = Moment
        fields = ("id", "server", "label", "at", "note", "created_by", "created_at")
        read_only_fields = fields


class MomentCreateSerializer(serializers.Serializer[Any]):
    server = serializers.SlugRelatedField(
        queryset=PerforceServer.objects.all(), slug_field="name", help_text="Its name."
    )
    label = Text(  # type: ignore[assignment]  # what is sent, not how a field is called
        max_length=LONGEST_LABEL, help_text="What was changed."
    )
    at = serializers.DateTimeField(help_text="In the last 13 months.")
    note = Text(required=False, allow_blank=True, max_length=LONGEST_NOTE)


class ComparisonQuery(serializers.Serializer[Any]):
    """Days beside a moment, or four times; those given win."""

    what = serializers.ChoiceField(
        choices=[(source.code, source.title) for source in SOURCES], required=False
    )
    server = serializers.CharField(
        required=False, help_text="Its name. Left out: that of the moment."
    )
    moment = serializers.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="Its id."
    )
    days = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Before and after the moment; 14 unless given.",
    )
    before_since = serializers.DateTimeField(required=False)
    before_until = serializers.DateTimeField(required=False)
    after_since = serializers.DateTimeField(required=False)
    after_until = serializers.DateTimeField(required=False)


class ReportMailsCreateSerializer(ComparisonQuery):
    """What to compare, as in a comparison, and whom to mail it to."""

    people = serializers.ListField(
        child=Text(max_length=150), min_length=1, max_length=MOST_PEOPLE
    )


class ReportMailSerializer(serializers.ModelSerializer[ReportMail]):
    """A mail with a report, and what became of it."""

    server = serializers.CharField(source="server.name")
    person = serializers.CharField(source="person.username")
    requested_by = serializers.CharField(source="requested_by.username")
    outcome = serializers.CharField()

    class Meta:
        model = ReportMail
        fields = (
            "id",
            "server",
            "person",
            "subject",
            "requested_by",
            "requested_at",
            "sent_at",
            "outcome",
        )
        read_only_fields = fields


class ReportMailsSerializer(serializers.Serializer[Any]):
    mails = ReportMailSerializer(many=True)


class SummarySerializer(serializers.Serializer[Any]):
    """The statistics of one period."""

    number = serializers.IntegerField()
    days = serializers.IntegerField(help_text="Days in UTC with a value.")
    average = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    median = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    p95 = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    maximum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)
    minimum = serializers.FloatField(allow_null=True, help_text=_NOT_MEASURED)


class ComparisonSerializer(serializers.Serializer[Any]):
    """What became of one measure; lower is better."""

    measure = serializers.CharField(source="name")
    before = SummarySerializer(source="comparison.before")
    after = SummarySerializer(source="comparison.after")
    variance = serializers.FloatField(
        source="comparison.share",
        allow_null=True,
        help_text="(before - after) / before, of the averages.",
    )
    adjusted = serializers.FloatField(
        source="comparison.adjusted",
        allow_null=True,
        help_text="That at the work of the first period; null: not known.",
    )
    interval = serializers.ListField(
        source="comparison.interval",
        child=serializers.FloatField(),
        allow_null=True,
        help_text="Where variance lies with 99 % confidence; null: too few values.",
    )
    outcome = serializers.ChoiceField(
        source="comparison.outcome", choices=[str(each) for each in Outcome]
    )
    reason = serializers.CharField(source="comparison.reason")
