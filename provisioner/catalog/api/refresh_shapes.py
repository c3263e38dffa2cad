"""Serializers of freshness and refresh policies."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, Number, Text
from provisioner.catalog.actions.refresh import LONGEST_DAYS, LONGEST_SECONDS
from provisioner.catalog.models import RefreshPolicy
from provisioner.lib import schedules


class FreshnessSerializer(serializers.Serializer[Any]):
    """What was submitted under its view since the newest snapshot."""

    changes = serializers.IntegerField(help_text="How many changes it is behind.")
    newest = serializers.IntegerField(
        allow_null=True, help_text="The newest of them; null if there are none."
    )
    since = serializers.DateTimeField(
        allow_null=True, help_text="When the first of them was submitted."
    )
    users = serializers.ListField(
        child=serializers.CharField(), help_text="Who submitted them, by p4_user."
    )


class RefreshSerializer(serializers.Serializer[Any]):
    """When it is built automatically."""

    mode = serializers.ChoiceField(choices=RefreshPolicy.Mode.choices)
    quiet_seconds = serializers.IntegerField(
        help_text="on_change: the quiet time needed before a build."
    )
    every_seconds = serializers.IntegerField(
        help_text="on_change: the minimum time between builds."
    )
    cron = serializers.CharField(help_text="cron: five fields, in UTC.")
    clean_cron = serializers.CharField(
        help_text="Schedule of clean builds: five fields, in UTC; “”: only on request."
    )
    unused_days = serializers.IntegerField(
        allow_null=True,
        help_text="Refreshes stop while it is unused for this long; null: never.",
    )
    is_paused = serializers.BooleanField()
    sentence = serializers.CharField(help_text="All of this as a sentence.")


class RefreshSaveSerializer(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=RefreshPolicy.Mode.choices)
    quiet_seconds = Number(default=120, min_value=0, max_value=LONGEST_SECONDS)
    every_seconds = Number(default=1800, min_value=0, max_value=LONGEST_SECONDS)
    cron = Text(
        default="",
        allow_blank=True,
        max_length=schedules.LONGEST,
        help_text="Such as 0 3 * * mon-fri, in UTC; mode cron needs it.",
    )
    clean_cron = Text(
        default="",
        allow_blank=True,
        max_length=schedules.LONGEST,
        help_text="The schedule of builds that first remove everything that is not in "
        "Perforce.",
    )
    unused_days = Number(
        default=None, allow_null=True, min_value=1, max_value=LONGEST_DAYS
    )
    is_paused = Flag(default=False)
