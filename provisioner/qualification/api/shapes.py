"""Serializers of runs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text
from provisioner.qualification.models import BOUNDS, QualificationRun
from provisioner.qualification.profiles import CHOICES
from provisioner.qualification.reports import figure_lines


def _number(name: str) -> Number:
    low, high = BOUNDS[name]
    return Number(
        min_value=low,
        max_value=high,
        required=False,
        help_text="Default: as usual for the profile.",
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


class QualificationRunSerializer(serializers.ModelSerializer[QualificationRun]):
    server = serializers.CharField(source="perforce_server.name")
    sandbox = serializers.CharField(
        source="sandbox.name",
        default=None,
        allow_null=True,
        help_text="null: the server itself was measured.",
    )
    site = serializers.CharField(source="site.name")
    owner = serializers.CharField(source="owner.username")
    figures = serializers.SerializerMethodField()
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

    def get_summary(self, run: QualificationRun) -> list[str]:
        return run.summary.splitlines()


class QualificationRunCreateSerializer(serializers.Serializer[Any]):
    profile = serializers.ChoiceField(choices=CHOICES)
    sandbox = IdOrName(required=False, help_text="One that is ready.")
    server = IdOrName(
        required=False, help_text="One that is marked as scratch, for administrators."
    )
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
