"""Serializers of logs, and of the commands in them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.accounts.zones import LONGEST_NAME
from provisioner.server_log.models import (
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
    LogUpload,
    ServerLog,
)
from provisioner.server_log.periods import DEFAULT_DAYS, period_of, why_no_time
from provisioner.server_log.polling import DEFAULT_POLLING_ORDER, POLLING_ORDERS
from provisioner.server_log.tallies import (
    DEFAULT_BY,
    DEFAULT_LOCK_ORDER,
    DEFAULT_ORDER,
    LOCK_ORDERS,
    TALLIED,
    LockBy,
    Whose,
)
from provisioner.sites.models import PerforceServer


class ServerLogSerializer(serializers.ModelSerializer[ServerLog]):
    """The log of a Perforce server, and how far it was read."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField()

    class Meta:
        model = ServerLog
        fields = (
            *("server", "server_id", "way", "path", "time_zone", "is_followed"),
            *("read_at", "build_users", "behind_bytes", "trouble", "commands"),
            *("errors", "other_lines"),
            *("not_utf8", "ends_without_start", "clock_jumps", "misdated", "gaps"),
        )
        read_only_fields = fields


class ServerLogChangeSerializer(serializers.Serializer[Any]):
    way = serializers.ChoiceField(
        choices=ServerLog.Way.choices,
        required=False,
        help_text="By a worker on the host, or by p4 logtail.",
    )
    path = serializers.CharField(
        max_length=1000,
        required=False,
        allow_blank=True,
        help_text="P4LOG, with its whole path; p4 logtail needs none.",
    )
    time_zone = serializers.CharField(max_length=LONGEST_NAME, required=False)
    is_followed = serializers.BooleanField(required=False)
    build_users = serializers.CharField(
        max_length=2000,
        required=False,
        allow_blank=True,
        help_text="Perforce users whose commands count as those of builds from then "
        "on, one a line; * is any text.",
    )


class LogUploadSerializer(serializers.ModelSerializer[LogUpload]):
    """A log that was sent to Cloneyard, and what came of it."""

    server = serializers.CharField(source="server.name")
    uploaded_by = serializers.CharField(
        source="uploaded_by.username", allow_null=True, default=None
    )

    class Meta:
        model = LogUpload
        fields = (
            *("id", "server", "name", "size", "state", "message", "uploaded_by"),
            "uploaded_at",
        )
        read_only_fields = fields


class LogUploadQuery(serializers.Serializer[Any]):
    server = serializers.SlugRelatedField(
        slug_field="name", queryset=PerforceServer.objects.all(), help_text="Its name."
    )
    name = serializers.CharField(max_length=255, help_text="Of the file.")


class LogMessageSerializer(serializers.ModelSerializer[LogMessage]):
    """An error of a command, or what a server said of itself."""

    server = serializers.CharField(source="log.server.name")

    class Meta:
        model = LogMessage
        fields = ("id", "server", "at", "kind", "pid", "operation", "text")
        read_only_fields = fields


def _with_times(attrs: dict[str, Any]) -> dict[str, Any]:
    since, until = attrs.get("since"), attrs.get("until")
    if why := why_no_time(since=since, until=until):
        raise serializers.ValidationError(why)
    return attrs


class TimesQuery(serializers.Serializer[Any]):
    """A time, at a server or at all of them."""

    server = serializers.CharField(required=False, help_text="Its name.")
    days = serializers.IntegerField(
        min_value=1,
        max_value=3650,
        default=DEFAULT_DAYS,
        help_text="How many days back: commands that began since.",
    )
    since = serializers.DateTimeField(
        required=False, help_text="From then on, instead of `days`."
    )
    until = serializers.DateTimeField(
        required=False, help_text="Before then; until now unless it is given."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _with_times(attrs)


class CommandsQuery(TimesQuery):
    """A time, and whose commands of it."""

    whose = serializers.ChoiceField(
        choices=Whose.choices,
        required=False,
        allow_blank=True,
        help_text="Without builds, or only of builds or of Cloneyard.",
    )


class LogMessageQuery(TimesQuery):
    kind = serializers.ChoiceField(required=False, choices=LogMessage.Kind.choices)
    pid = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)


class LogCommandSerializer(serializers.ModelSerializer[LogCommand]):
    """A command in the log of a server; times in milliseconds."""

    server = serializers.CharField(source="log.server.name")

    class Meta:
        model = LogCommand
        fields = (
            *("id", "server", "started_at", "ended_at", "pid", "user", "client"),
            *("host", "program", "command", "arguments", "lapse_ms", "compute_ms"),
            *("paused_ms", "cpu_ms", "wait_ms", "held_ms", "max_rss_kb", "rpc_in_mb"),
            *("rpc_out_mb", "files_sent", "sent_mb", "has_failed", "rows_scanned"),
            *("origin",),
        )
        read_only_fields = fields


class LogCommandQuery(CommandsQuery):
    user = serializers.CharField(required=False)
    client = serializers.CharField(required=False)
    host = serializers.CharField(required=False)
    program = serializers.CharField(required=False)
    command = serializers.CharField(required=False, help_text="Such as user-sync.")
    pid = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    at_least = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="Those that took at least this many seconds.",
    )
    has_failed = serializers.BooleanField(required=False)
    at_least_rows = serializers.IntegerField(
        min_value=0,
        max_value=2**53,
        required=False,
        help_text="Those that scanned at least this many rows.",
    )


class LogTableUseSerializer(serializers.ModelSerializer[LogTableUse]):
    """A command's waits for a table's locks and holds of them; in milliseconds."""

    server = serializers.CharField(source="log.server.name")

    class Meta:
        model = LogTableUse
        fields = (
            *("server", "command_id", "started_at", "ended_at", "user", "client"),
            *("command", "origin", "table", "read_wait_ms", "read_held_ms"),
            *("write_wait_ms", "write_held_ms"),
        )
        read_only_fields = fields


class LogTableUseQuery(CommandsQuery):
    table = serializers.CharField(required=False, help_text="Such as db.have.")
    user = serializers.CharField(required=False)
    command = serializers.CharField(required=False, help_text="Such as user-sync.")


class LogLockHolderSerializer(serializers.Serializer[Any]):
    """A command and its use of the table; times in milliseconds."""

    command_id = serializers.IntegerField(help_text="Its id in server-commands.")
    user = serializers.CharField()
    command = serializers.CharField()
    began = serializers.DateTimeField()
    ended = serializers.DateTimeField()
    read_held_ms = serializers.IntegerField()
    write_held_ms = serializers.IntegerField()


class LogLockWaiterSerializer(LogLockHolderSerializer):
    read_wait_ms = serializers.IntegerField()
    write_wait_ms = serializers.IntegerField()


class LogLockWaitSerializer(serializers.Serializer[Any]):
    """A command that waited for a table's lock, and for whom."""

    table = serializers.CharField(source="waiter.table")
    waiter = LogLockWaiterSerializer()
    by = LogLockHolderSerializer(
        allow_null=True, help_text="Who held it; null if the log does not say."
    )
    through = LogLockWaiterSerializer(
        allow_null=True, help_text="The write that the waiter was behind, if `by` read."
    )


class LogCommandLockSerializer(serializers.Serializer[Any]):
    """What a command waited for a table's locks and held them, and for whom."""

    table = serializers.CharField(source="waiter.table")
    read_wait_ms = serializers.IntegerField(source="waiter.read_wait_ms")
    read_held_ms = serializers.IntegerField(source="waiter.read_held_ms")
    write_wait_ms = serializers.IntegerField(source="waiter.write_wait_ms")
    write_held_ms = serializers.IntegerField(source="waiter.write_held_ms")
    by = LogLockHolderSerializer(
        allow_null=True, help_text="Who held it; null if the log does not say."
    )
    through = LogLockWaiterSerializer(
        allow_null=True, help_text="The write that it was behind, if `by` read."
    )


class LogCommandLocksSerializer(serializers.Serializer[Any]):
    """A command, with its waits and holds of locks of 100 ms or more."""

    command = LogCommandSerializer()
    locks = LogCommandLockSerializer(many=True)


class LogLockWaitQuery(serializers.Serializer[Any]):
    server = serializers.SlugRelatedField(
        slug_field="name", queryset=PerforceServer.objects.all(), help_text="Its name."
    )
    since = serializers.DateTimeField(
        required=False, help_text="A day before `until` unless it is given."
    )
    until = serializers.DateTimeField(
        required=False, help_text="A day after `since` at most; now unless it is given."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _with_times(attrs)


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
    rows_scanned = serializers.IntegerField()
    most_rows = serializers.IntegerField(help_text="Scanned by one command.")


class PeriodQuery(TimesQuery):
    """As for commands; whole hours count, or whole days (UTC) of more than two days."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        asked = super().validate(attrs)
        times = {
            name: asked.pop(name)
            for name in ("days", "since", "until")
            if name in asked
        }
        return {**asked, "period": period_of(**times)}


class SumsQuery(PeriodQuery, CommandsQuery):
    """Whose commands are summed up, and over which period."""


class ServerLoadQuery(SumsQuery):
    by = serializers.ChoiceField(choices=LogSum.By.choices, default=DEFAULT_BY)
    order = serializers.ChoiceField(
        choices=[(name, name) for name in TALLIED if name != "name"],
        default=DEFAULT_ORDER,
        help_text="The largest come first.",
    )


class ServerPollingSerializer(serializers.Serializer[Any]):
    """What a program repeated all through some hours."""

    user = serializers.CharField()
    program = serializers.CharField()
    client = serializers.CharField()
    command = serializers.CharField()
    hours = serializers.IntegerField(help_text="In which it did so.")
    commands = serializers.IntegerField()
    every_seconds = serializers.IntegerField(help_text="On average, in these hours.")
    lapse_ms = serializers.IntegerField()
    rows_scanned = serializers.IntegerField()
    last_hour = serializers.DateTimeField()


class ServerPollingQuery(SumsQuery):
    order = serializers.ChoiceField(
        choices=[(name, name) for name in POLLING_ORDERS],
        default=DEFAULT_POLLING_ORDER,
        help_text="The largest come first.",
    )


class ServerCheckpointSerializer(serializers.Serializer[Any]):
    """A time in which a command locked all tables of a server."""

    server = serializers.CharField()
    began = serializers.DateTimeField()
    ended = serializers.DateTimeField()
    what = serializers.CharField()
    command_id = serializers.IntegerField(
        allow_null=True, help_text="Its id in server-commands; null if it was seen."
    )


class ServerLockSerializer(serializers.Serializer[Any]):
    """What commands waited for tables' locks and held them; in milliseconds.

    What they do not have in common is empty.
    """

    table = serializers.CharField()
    user = serializers.CharField()
    command = serializers.CharField()
    commands = serializers.IntegerField()
    read_held_ms = serializers.IntegerField()
    write_held_ms = serializers.IntegerField()
    read_wait_ms = serializers.IntegerField()
    write_wait_ms = serializers.IntegerField()
    wait_ms = serializers.IntegerField()
    longest_wait_ms = serializers.IntegerField()
    longest_held_ms = serializers.IntegerField()


class ServerLockQuery(SumsQuery):
    by = serializers.ChoiceField(choices=LockBy.choices, default=LockBy.COMMAND)
    order = serializers.ChoiceField(
        choices=[(name, name) for name in LOCK_ORDERS],
        default=DEFAULT_LOCK_ORDER,
        help_text="The largest come first.",
    )
