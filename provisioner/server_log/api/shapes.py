"""Serializers of logs, and of the commands in them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.accounts.zones import LONGEST_NAME
from provisioner.server_log.models import LogCommand, LogSum, ServerLog
from provisioner.server_log.queries import DEFAULT_DAYS
from provisioner.server_log.tallies import DEFAULT_BY, DEFAULT_ORDER, TALLIED


class ServerLogSerializer(serializers.ModelSerializer[ServerLog]):
    """The log of a Perforce server, and how far it was read."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField()

    class Meta:
        model = ServerLog
        fields = (
            *("server", "server_id", "path", "time_zone", "is_followed", "read_at"),
            *("behind_bytes", "trouble", "commands", "errors", "other_lines"),
            *("not_utf8", "ends_without_start", "clock_jumps", "misdated", "gaps"),
        )
        read_only_fields = fields


class ServerLogChangeSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(
        max_length=1000, required=False, help_text="P4LOG, with its whole path."
    )
    time_zone = serializers.CharField(max_length=LONGEST_NAME, required=False)
    is_followed = serializers.BooleanField(required=False)


class LogCommandSerializer(serializers.ModelSerializer[LogCommand]):
    """A command in the log of a server; times in milliseconds."""

    server = serializers.CharField(source="log.server.name")

    class Meta:
        model = LogCommand
        fields = (
            *("id", "server", "started_at", "ended_at", "pid", "user", "client"),
            *("host", "program", "command", "arguments", "lapse_ms", "compute_ms"),
            *("paused_ms", "cpu_ms", "wait_ms", "held_ms", "max_rss_kb", "rpc_in_mb"),
            *("rpc_out_mb", "files_sent", "sent_mb", "has_failed"),
        )
        read_only_fields = fields


class LogCommandQuery(serializers.Serializer[Any]):
    server = serializers.CharField(required=False, help_text="Its name.")
    user = serializers.CharField(required=False)
    client = serializers.CharField(required=False)
    command = serializers.CharField(required=False, help_text="Such as user-sync.")
    days = serializers.IntegerField(
        min_value=1,
        max_value=3650,
        default=DEFAULT_DAYS,
        help_text="Those that began in so many last days.",
    )
    at_least = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="Those that took so many seconds or more.",
    )


class ServerLoadSerializer(serializers.Serializer[Any]):
    """What all commands with one name in common took; times in milliseconds."""

    name = serializers.CharField()
    commands = serializers.IntegerField()
    failed = serializers.IntegerField()
    over_30s = serializers.IntegerField()
    over_60s = serializers.IntegerField()
    over_120s = serializers.IntegerField()
    lapse_ms = serializers.IntegerField()
    longest_ms = serializers.IntegerField()
    cpu_ms = serializers.IntegerField()
    wait_ms = serializers.IntegerField()
    held_ms = serializers.IntegerField()
    files_sent = serializers.IntegerField()
    sent_mb = serializers.IntegerField()


class ServerLoadQuery(serializers.Serializer[Any]):
    server = serializers.CharField(required=False, help_text="Its name.")
    days = serializers.IntegerField(
        min_value=1,
        max_value=3650,
        default=DEFAULT_DAYS,
        help_text="The last so many days; more than two count whole days (UTC).",
    )
    by = serializers.ChoiceField(choices=LogSum.By.choices, default=DEFAULT_BY)
    order = serializers.ChoiceField(
        choices=[(name, name) for name in TALLIED if name != "name"],
        default=DEFAULT_ORDER,
        help_text="The largest come first.",
    )
