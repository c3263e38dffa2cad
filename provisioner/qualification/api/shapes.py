"""Serializers of runs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text
from provisioner.lib.names import LONGEST_NAME
from provisioner.qualification.models import BOUNDS, QualificationRun
from provisioner.qualification.profiles import CHOICES, PHASES
from provisioner.qualification.reports import figure_lines, phase_lines
from provisioner.sandboxes.models import LONGEST_HOURS


def _number(name: str) -> Number:
    low, high = BOUNDS[name]
    return Number(
        min_value=low,
        max_value=high,
        required=False,
        help_text="Default: that of the profile.",
    )


class RunFigureSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    title = serializers.CharField()
    unit = serializers.CharField(help_text="“”: a number.")
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="Of each repeat; null: not measured.",
    )
    average = serializers.FloatField(allow_null=True)


class PhaseFiguresSerializer(serializers.Serializer[Any]):
    at_once = serializers.IntegerField(help_text="Workspaces requested at once.")
    phase = serializers.ChoiceField(choices=list(PHASES.items()))
    number = serializers.IntegerField(help_text="Workspaces that were measured.")
    average = serializers.FloatField(help_text="Seconds, as all of these.")
    median = serializers.FloatField()
    p95 = serializers.FloatField()
    longest = serializers.FloatField()


class QualificationRunSerializer(serializers.ModelSerializer[QualificationRun]):
    server = serializers.CharField(source="perforce_server.name")
    sandbox = serializers.CharField(
        source="sandbox.name",
        default=None,
        allow_null=True,
        help_text="null: the server itself was measured.",
    )
    template = serializers.CharField(
        source="template.name",
        default=None,
        allow_null=True,
        help_text="null: no workspaces were measured.",
    )
    site = serializers.CharField(source="site.name")
    owner = serializers.CharField(source="owner.username")
    figures = serializers.SerializerMethodField()
    phases = serializers.SerializerMethodField(
        help_text="Of workspaces alone: all repeats together."
    )
    summary = serializers.SerializerMethodField(
        help_text="What the log tells, as sentences."
    )

    class Meta:
        model = QualificationRun
        fields = (
            "id",
            "profile",
            "server",
            "sandbox",
            "template",
            "site",
            "owner",
            *BOUNDS,
            "is_cold",
            "note",
            "state",
            "status_code",
            "status_message",
            "release",
            "created_at",
            "ended_at",
            "figures",
            "phases",
            "summary",
        )
        read_only_fields = fields

    def get_figures(self, run: QualificationRun) -> list[dict[str, Any]]:
        lines = [
            {
                "code": line.figure.code,
                "title": line.figure.title,
                "unit": line.figure.unit,
                "values": line.values,
                "average": line.average,
            }
            for line in figure_lines(run)
        ]
        return [*RunFigureSerializer(lines, many=True).data]

    @extend_schema_field(PhaseFiguresSerializer(many=True))
    def get_phases(self, run: QualificationRun) -> list[dict[str, Any]]:
        return [
            {"at_once": line.at_once, "phase": line.phase, **line.figures}
            for line in phase_lines(run)
        ]

    def get_summary(self, run: QualificationRun) -> list[str]:
        return run.summary.splitlines()


class MeasuringSerializer(serializers.Serializer[Any]):
    """How something is measured."""

    is_cold = serializers.BooleanField(default=False)
    note = Text(max_length=200, required=False, allow_blank=True)
    files = _number("files")
    size = _number("size")
    seed = _number("seed")
    children = _number("children")
    hosts = _number("hosts")
    rounds = _number("rounds")
    stagger_ms = _number("stagger_ms")
    repeats = _number("repeats")


class QualificationRunCreateSerializer(MeasuringSerializer):
    profile = serializers.ChoiceField(choices=CHOICES)
    sandbox = IdOrName(required=False, help_text="One that is ready.")
    server = IdOrName(
        required=False, help_text="One that is marked as scratch, for administrators."
    )
    template = IdOrName(
        required=False, help_text="For the profile “workspaces”, for administrators."
    )


class BaselineCreateSerializer(MeasuringSerializer):
    profile = serializers.ChoiceField(choices=CHOICES)
    server = IdOrName(help_text="The Perforce server that is copied.")
    name = Text(max_length=LONGEST_NAME, help_text="Of the sandbox.")
    version = Text(max_length=8, help_text="The release of p4d, such as 2024.2.")
    host = IdOrName(help_text="A host of sandboxes.")
    hours = Number(min_value=1, max_value=LONGEST_HOURS)
