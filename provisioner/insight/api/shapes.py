"""Serializers of processes, and of how servers are set up."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import Number
from provisioner.insight.actions import MOST_COUNTED, MOST_DAYS, MOST_HOURS
from provisioner.insight.client_advice import KINDS
from provisioner.insight.models import (
    Process,
    ProcessEnding,
    ProgramMail,
    ProgramRelease,
    ProgramUse,
    ServerConfiguration,
    ServerFilesystem,
    ServerSetting,
)
from provisioner.insight.overviews import overview_of
from provisioner.insight.programs import LONGEST_NAME, RELEASE
from provisioner.insight.rules import Outcome


class ProcessSerializer(serializers.ModelSerializer[Process]):
    """A process of a Perforce server, as last read."""

    server = serializers.CharField(source="server.name")
    is_of_the_server = serializers.BooleanField(
        help_text="Replication and the like, which Cloneyard does not end."
    )

    class Meta:
        model = Process
        fields = (
            "id",
            "server",
            "number",
            "state",
            "user",
            "program",
            "client",
            "host",
            "command",
            "arguments",
            "started_at",
            "is_of_the_server",
        )
        read_only_fields = fields


class ProcessListQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="server__name", required=False, help_text="Its name."
    )
    user = serializers.CharField(required=False)
    state = serializers.ChoiceField(choices=Process.State.choices, required=False)
    at_least = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="Those whose command began at least this many seconds ago.",
    )


class ProgramUseSerializer(serializers.ModelSerializer[ProgramUse]):
    """A program that a user ran at a server."""

    server = serializers.CharField(source="server.name")

    class Meta:
        model = ProgramUse
        fields = (
            "server",
            "program",
            "release",
            "user",
            "host",
            "first_seen_at",
            "last_seen_at",
        )
        read_only_fields = fields


class ProgramUseListQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="server__name", required=False, help_text="Its name."
    )
    user = serializers.CharField(required=False)
    program = serializers.CharField(required=False)
    older_than = serializers.RegexField(
        RELEASE, required=False, help_text="A release such as 2024.1."
    )


class ProgramReleaseSerializer(serializers.ModelSerializer[ProgramRelease]):
    """Which releases of a program people should have."""

    class Meta:
        model = ProgramRelease
        fields = ("program", "minimum", "recommended")
        read_only_fields = fields


class OutdatedSerializer(serializers.Serializer[Any]):
    """A release in use that is older than it should be."""

    program = serializers.CharField()
    release = serializers.CharField()
    minimum = serializers.CharField()
    recommended = serializers.CharField()
    is_too_old = serializers.BooleanField(help_text="Older than the minimum.")


class PersonToAskSerializer(serializers.Serializer[Any]):
    """A Perforce user with old programs."""

    user = serializers.CharField()
    outdated = OutdatedSerializer(many=True)
    mailed_at = serializers.DateTimeField(
        allow_null=True, help_text="When they were last asked; null: never."
    )
    trouble = serializers.CharField(
        help_text="Why they did not get the last mail, empty if they did."
    )
    is_due = serializers.BooleanField(help_text="False for 30 days after a mail.")


class ServerReleasesSerializer(serializers.Serializer[Any]):
    """Which releases a server's users should have, and who has older ones."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField(source="server.pk")
    releases = ProgramReleaseSerializer(many=True)
    people = PersonToAskSerializer(many=True)


class ProgramReleaseChangeSerializer(serializers.Serializer[Any]):
    """Both empty: nobody is asked to update the program."""

    program = serializers.CharField(max_length=LONGEST_NAME)
    minimum = serializers.CharField(
        required=False, allow_blank=True, max_length=7, help_text="Such as 2022.1."
    )
    recommended = serializers.CharField(
        required=False, allow_blank=True, max_length=7, help_text="Such as 2024.2."
    )


class ProgramMailSerializer(serializers.ModelSerializer[ProgramMail]):
    """A mail about old programs."""

    user = serializers.CharField(source="p4_user")

    class Meta:
        model = ProgramMail
        fields = ("id", "user", "requested_at")
        read_only_fields = fields


class ProgramMailsSerializer(serializers.Serializer[Any]):
    mails = ProgramMailSerializer(many=True)


class OrphanRuleSerializer(serializers.Serializer[Any]):
    """Which processes of a server count as orphans, and those that are some now."""

    server = serializers.CharField(source="rule.server.name")
    server_id = serializers.IntegerField(source="rule.server.pk")
    command_hours = serializers.IntegerField(
        source="rule.command_hours", allow_null=True, help_text="null: never."
    )
    idle_hours = serializers.IntegerField(
        source="rule.idle_hours", allow_null=True, help_text="null: never."
    )
    only_gone_hosts = serializers.BooleanField(source="rule.only_gone_hosts")
    is_automatic = serializers.BooleanField(source="rule.is_automatic")
    orphans = ProcessSerializer(many=True)


class OrphanRuleChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    command_hours = Number(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_HOURS,
        help_text="When a running or paused command counts; null: never.",
    )
    idle_hours = Number(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_HOURS,
        help_text="When an idle connection counts; null: never.",
    )
    only_gone_hosts = serializers.BooleanField(
        required=False,
        help_text="Only if the client's host has no name, or no route leads to it.",
    )
    is_automatic = serializers.BooleanField(
        required=False, help_text="End them automatically, 20 in five minutes."
    )


class ProcessEndingSerializer(serializers.ModelSerializer[ProcessEnding]):
    """A request to end a process, and what became of it."""

    server = serializers.CharField(source="server.name")
    requested_by = serializers.CharField(source="requested_by.username")

    class Meta:
        model = ProcessEnding
        fields = (
            "id",
            "server",
            "number",
            "user",
            "command",
            "started_at",
            "requested_by",
            "requested_at",
            "state",
            "message",
        )
        read_only_fields = fields


class OrphansEndSerializer(serializers.Serializer[Any]):
    endings = ProcessEndingSerializer(many=True)


class FindingAdviceSerializer(serializers.Serializer[Any]):
    """What is advised about a client, and why."""

    code = serializers.CharField(help_text="Of the advice; it does not change.")
    title = serializers.CharField()
    saw = serializers.CharField()
    advice = serializers.CharField()
    reference = serializers.CharField(
        source="source", help_text="Where the advice comes from."
    )


class AdvisedClientSerializer(serializers.Serializer[Any]):
    """A client of a Perforce server with what is advised about it."""

    server = serializers.CharField(source="client.server.name")
    name = serializers.CharField(source="client.name")
    kind = serializers.CharField(source="client.kind", help_text="Its type, or empty.")
    owner = serializers.CharField(source="client.owner")
    host = serializers.CharField(source="client.host")
    accessed_at = serializers.DateTimeField(
        source="client.accessed_at", allow_null=True
    )
    opened_files = serializers.IntegerField(source="client.opened_files")
    locked_files = serializers.IntegerField(source="client.locked_files")
    synced_files = serializers.IntegerField(
        source="client.synced_files",
        allow_null=True,
        help_text="That its largest sync sent; null: not known.",
    )
    findings = FindingAdviceSerializer(many=True)


class AdvisedClientListQuery(serializers.Serializer[Any]):
    server = serializers.CharField(
        source="server__name", required=False, help_text="Its name."
    )
    owner = serializers.CharField(required=False)
    advice = serializers.ChoiceField(
        choices=[(kind.code, kind.title) for kind in KINDS], required=False
    )


class AdviceRuleSerializer(serializers.Serializer[Any]):
    """When clients and protections of a server get advice."""

    server = serializers.CharField(source="server.name")
    server_id = serializers.IntegerField(source="server.pk")
    unused_days = serializers.IntegerField()
    many_files = serializers.IntegerField()
    many_protections = serializers.IntegerField()


class AdviceRuleChangeSerializer(serializers.Serializer[Any]):
    """Fields that are left out do not change."""

    unused_days = Number(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Since its Access date, when a client counts as unused.",
    )
    many_files = Number(
        required=False,
        min_value=1,
        max_value=MOST_COUNTED,
        help_text="From how many files sent a sync counts as large.",
    )
    many_protections = Number(
        required=False,
        min_value=1,
        max_value=MOST_COUNTED,
        help_text="From how many lines protections are long.",
    )


class ServerSettingSerializer(serializers.ModelSerializer[ServerSetting]):
    class Meta:
        model = ServerSetting
        fields = ("name", "value", "source")
        read_only_fields = fields


class ServerFilesystemSerializer(serializers.ModelSerializer[ServerFilesystem]):
    class Meta:
        model = ServerFilesystem
        fields = ("name", "fs_type", "mount_point", "percent_used", "mount_options")
        read_only_fields = fields


class JudgmentSerializer(serializers.Serializer[Any]):
    """What one rule says of a server."""

    code = serializers.CharField(help_text="Of the rule; it does not change.")
    title = serializers.CharField()
    outcome = serializers.ChoiceField(choices=[str(each) for each in Outcome])
    saw = serializers.CharField()
    advice = serializers.CharField(help_text="What it would do; may be empty.")
    reference = serializers.CharField(
        source="source", help_text="Where the rule comes from."
    )


class ConfigurationSerializer(serializers.ModelSerializer[ServerConfiguration]):
    """How a Perforce server is set up, as last read."""

    server = serializers.CharField(source="server.name")
    settings = ServerSettingSerializer(many=True)
    filesystems = ServerFilesystemSerializer(many=True)
    judgments = serializers.SerializerMethodField()

    class Meta:
        model = ServerConfiguration
        fields = (
            "id",
            "server",
            "read_at",
            "trouble",
            "version",
            "users",
            "files",
            "protection_lines",
            "wide_protections",
            "host",
            "host_read_at",
            "memory_bytes",
            "settings",
            "filesystems",
            "judgments",
        )
        read_only_fields = fields

    @extend_schema_field(JudgmentSerializer(many=True))
    def get_judgments(self, configuration: ServerConfiguration) -> Any:
        judgments = overview_of(configuration).judgments
        return JudgmentSerializer(judgments, many=True).data


class ConfigurationsRequestedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="The number of servers to be read.")
