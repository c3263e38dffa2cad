"""Serializers of sandboxes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Number, Text
from provisioner.lib.names import LONGEST_NAME
from provisioner.sandboxes.models import (
    HIGHEST_PORT,
    LONGEST_HOURS,
    LOWEST_PORT,
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPolicy,
    ServerVolumes,
)

LARGEST_ID = 2**31 - 1


class SandboxSerializer(serializers.ModelSerializer[Sandbox]):
    server = serializers.CharField(source="perforce_server.name")
    site = serializers.CharField(source="site.name")
    host = serializers.CharField(source="host.name")
    owner = serializers.CharField(source="owner.username")
    p4port = serializers.CharField(help_text="Where its server answers.")
    defanged = serializers.ListField(
        child=serializers.CharField(),
        help_text="What was switched off before it was started, as sentences.",
    )

    upgraded_from = serializers.CharField(
        help_text="The original's release, if a newer p4d upgraded the copy; or empty."
    )
    upgrade_seconds = serializers.FloatField(
        allow_null=True,
        help_text="How long that took. null: no upgrade, or one that was interrupted.",
    )

    class Meta:
        model = Sandbox
        fields = (
            "id",
            "name",
            "server",
            "site",
            "host",
            "owner",
            "purpose",
            "release",
            "server_id",
            "p4port",
            "state",
            "status_code",
            "status_message",
            "consistency",
            "taken_at",
            "ready_at",
            "expires_at",
            "defanged",
            "upgraded_from",
            "upgrade_seconds",
        )
        read_only_fields = fields


class SandboxCreateSerializer(serializers.Serializer[Any]):
    server = IdOrName(help_text="The Perforce server that it is a copy of.")
    name = Text(max_length=LONGEST_NAME)
    purpose = serializers.ChoiceField(choices=Sandbox.Purpose.choices)
    version = Text(max_length=8, help_text="The release of p4d, such as 2024.2.")
    host = IdOrName(help_text="A host of sandboxes.")
    hours = Number(min_value=1, max_value=LONGEST_HOURS)
    port = Number(
        min_value=LOWEST_PORT,
        max_value=HIGHEST_PORT,
        required=False,
        help_text="Default: the next free one of the host.",
    )
    server_id = Text(
        max_length=64,
        required=False,
        help_text="Default: “sandbox-” and its name.",
    )
    reason = Text(max_length=500, required=False)


class SandboxExtendSerializer(serializers.Serializer[Any]):
    hours = Number(min_value=1, max_value=LONGEST_HOURS, help_text="From now.")


class SandboxRetireSerializer(serializers.Serializer[Any]):
    without_host = serializers.BooleanField(
        default=False,
        help_text="Do not wait for a host that does not answer. It ends what is left "
        "there when its worker is back.",
    )


class ServerVolumesSerializer(serializers.ModelSerializer[ServerVolumes]):
    server = serializers.CharField(source="server.name")
    site = serializers.CharField(source="site.name")
    places = serializers.SerializerMethodField(
        help_text="One a line: the role, then VOLUME/PATH."
    )

    class Meta:
        model = ServerVolumes
        fields = ("id", "server", "site", "places")
        read_only_fields = fields

    def get_places(self, volumes: ServerVolumes) -> str:
        return "\n".join(place.line for place in volumes.places.all())


class ServerVolumesSaveSerializer(serializers.Serializer[Any]):
    server = IdOrName()
    site = IdOrName(help_text="Whose SVM has the volumes.")
    places = Text(
        max_length=2000,
        help_text="One a line: db, journal, log or depot, then VOLUME/PATH.",
    )


class P4dVersionSerializer(serializers.ModelSerializer[P4dVersion]):
    class Meta:
        model = P4dVersion
        fields = ("id", "release", "path")
        read_only_fields = fields


class P4dVersionSaveSerializer(serializers.Serializer[Any]):
    release = Text(max_length=8, help_text="Such as 2024.2.")
    path = Text(max_length=255, help_text="On every host of sandboxes.")


class SandboxHostSerializer(serializers.ModelSerializer[SandboxHost]):
    site = serializers.CharField(source="site.name")
    queue = serializers.CharField(help_text="What its worker serves.")
    sandboxes = serializers.IntegerField(
        source="number", help_text="How many sandboxes it has."
    )

    class Meta:
        model = SandboxHost
        fields = (
            "id",
            "name",
            "site",
            "address",
            "first_port",
            "last_port",
            "at_most",
            "sandboxes",
            "uid",
            "gid",
            "queue",
        )
        read_only_fields = fields


class SandboxHostSaveSerializer(serializers.Serializer[Any]):
    name = Text(max_length=LONGEST_NAME)
    site = IdOrName(help_text="What it mounts.")
    address = Text(
        max_length=255, default="127.0.0.1", help_text="Where its sandboxes answer."
    )
    first_port = Number(min_value=LOWEST_PORT, max_value=HIGHEST_PORT, default=16660)
    at_most = Number(
        min_value=1, max_value=100, default=5, help_text="Sandboxes at a time."
    )
    uid = Number(min_value=1, max_value=LARGEST_ID, help_text="Who runs p4d there.")
    gid = Number(min_value=1, max_value=LARGEST_ID)


class SandboxPolicySerializer(serializers.ModelSerializer[SandboxPolicy]):
    team = serializers.CharField(source="team.name")

    class Meta:
        model = SandboxPolicy
        fields = ("id", "team", "at_most", "team_at_most", "longest_hours")
        read_only_fields = fields


class SandboxPolicySaveSerializer(serializers.Serializer[Any]):
    team = IdOrName()
    at_most = Number(
        min_value=1, max_value=100, default=1, help_text="For each person."
    )
    team_at_most = Number(
        min_value=1,
        max_value=1000,
        allow_null=True,
        default=None,
        help_text="For its people together; null: no limit.",
    )
    longest_hours = Number(min_value=1, max_value=LONGEST_HOURS, default=24)
