"""Serializers of templates and their snapshots."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import (
    Flag,
    Name,
    Number,
    Text,
    WorkedOutOnce,
    read_once,
)
from provisioner.catalog.actions.lifecycle import LONGEST_TITLE
from provisioner.catalog.actions.snapshots import (
    LONGEST_LABEL,
    LONGEST_NOTES,
    LONGEST_REASON,
)
from provisioner.catalog.actions.templates import DEFINITION, MOST_PATHS
from provisioner.catalog.api.refresh_shapes import (
    FreshnessSerializer,
    RefreshSerializer,
)
from provisioner.catalog.freshness import behind_of, freshness_since, policies_of
from provisioner.catalog.models import LineEnd, Snapshot, Template, references_of
from provisioner.catalog.models.templates import (
    LEAST_VOLUME_BYTES,
    MOST_VOLUME_BYTES,
)
from provisioner.lib.names import LONGEST_NAME

LARGEST_CHANGE = 2**31 - 1  # Perforce changes are signed 32-bit numbers


class PartSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="A depot path.")
    change = serializers.IntegerField()


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    parts = PartSerializer(
        many=True,
        help_text="Paths at another change than the rest. Such a snapshot is never "
        "the default.",
    )
    behind = serializers.SerializerMethodField(
        help_text="Changes under its template's view since then; null: unknown."
    )
    remarks = serializers.ListField(
        child=serializers.JSONField(), help_text="Remarks for people."
    )
    held_by = serializers.CharField(
        source="held_by.username",
        allow_null=True,
        default=None,
        help_text="Who holds it as the default; null: not held.",
    )
    withdrawn_by = serializers.CharField(
        source="withdrawn_by.username",
        allow_null=True,
        default=None,
        help_text="When it was withdrawn and no longer offered; null: it was not.",
    )

    class Meta:
        model = Snapshot
        fields = (
            "id",
            "template",
            "name",
            "change",
            "parts",
            "quality",
            "is_clean",
            "behind",
            "have_count",
            "have_digest",
            "remarks",
            "sync_seconds",
            "build_seconds",
            "test_seconds",
            "operation",
            "created_at",
            "label",
            "notes",
            "held_at",
            "held_by",
            "hold_reason",
            "withdrawn_at",
            "withdrawn_by",
            "withdraw_reason",
        )
        read_only_fields = fields

    def get_behind(self, snapshot: Snapshot) -> int | None:
        return read_once(self, "behind", behind_of).get(snapshot.pk)


class PinningWorkspaceSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username")
    state = serializers.CharField()


class PinsSerializer(serializers.Serializer[Any]):
    """What keeps a snapshot from being deleted."""

    is_needed = serializers.BooleanField(help_text="false: it will be deleted.")
    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What keeps it besides workspaces."
    )
    workspaces_count = serializers.IntegerField()
    workspaces = PinningWorkspaceSerializer(
        many=True, allow_null=True, help_text="null: for administrators only."
    )


class SnapshotReferenceSerializer(WorkedOutOnce, serializers.ModelSerializer[Snapshot]):
    class Meta:
        model = Snapshot
        fields = ("id", "name", "change", "withdrawn_at", "withdraw_reason")
        read_only_fields = fields


class DefaultSnapshot(TypedDict):
    id: int
    change: int
    quality: str


class TemplateSerializer(serializers.ModelSerializer[Template]):
    """`build_environment` is left out: people keep secrets there."""

    bisection_environment = serializers.DictField(
        child=serializers.CharField(),
        help_text="Variables for commands of bisections. Everybody can read them.",
    )
    owner = serializers.CharField(source="owner.username")
    file_bytes = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="What files can take of its volume: its size without the reserve.",
    )
    archived_by = serializers.CharField(
        source="archived_by.username",
        allow_null=True,
        default=None,
        help_text="When it was archived; archived templates give no new workspaces. "
        "null: not archived.",
    )
    pinned = serializers.BooleanField(
        source="is_pinned", help_text="Whether you pinned it to your home page."
    )
    site = serializers.CharField(source="site.name")
    perforce_server = serializers.CharField(
        source="perforce_server.name", help_text="The server of its client."
    )
    snapshot = serializers.SerializerMethodField(
        help_text="What a new workspace is cloned from; null before the first build, "
        "or if none has the required quality."
    )
    path = serializers.CharField()
    freshness = serializers.SerializerMethodField(
        help_text="null: not known yet, as before the first build."
    )
    refresh = serializers.SerializerMethodField()

    class Meta:
        model = Template
        fields = (
            "id",
            "name",
            "title",
            "owner",
            "pinned",
            "site",
            "perforce_server",
            "routed_because",
            "archived_at",
            "archived_by",
            "archive_reason",
            "description",
            "state",
            "status_code",
            "status_message",
            "snapshot",
            "freshness",
            "refresh",
            "path",
            "view",
            "stream",
            "line_end",
            "client_options",
            "submit_options",
            "build_command",
            "bisection_environment",
            "commands_have_network",
            "build_timeout_seconds",
            "test_command",
            "test_timeout_seconds",
            "wanted_quality",
            "ignore_patterns",
            "error_patterns",
            "volume_size_bytes",
            "actual_size_bytes",
            "aggregate",
            "file_bytes",
            "used_bytes",
            "snapshot_bytes",
            "used_inodes",
            "max_inodes",
            "snapshots_to_keep",
            "created_at",
        )
        read_only_fields = fields

    def get_snapshot(self, template: Template) -> DefaultSnapshot | None:
        reference = self._references().get(template.pk)
        if reference is None or not vars(reference)["is_default"]:
            return None
        return {
            "id": reference.pk,
            "change": reference.change,
            "quality": reference.quality,
        }

    @extend_schema_field(FreshnessSerializer(allow_null=True))
    def get_freshness(self, template: Template) -> Any:
        known = read_once(
            self, "freshness", lambda _: freshness_since(self._references())
        )
        freshness = known.get(template.pk)
        return None if freshness is None else FreshnessSerializer(freshness).data

    def _references(self) -> dict[int, Snapshot]:
        return read_once(self, "references", references_of)

    @extend_schema_field(RefreshSerializer)
    def get_refresh(self, template: Template) -> Any:
        policies = read_once(self, "refreshes", policies_of)
        return RefreshSerializer(policies[template.pk]).data


class TemplateCreateSerializer(serializers.ModelSerializer[Template]):
    serializer_field_mapping: ClassVar = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Text,
        models.TextField: Text,
        models.PositiveSmallIntegerField: Number,
        models.PositiveIntegerField: Number,
        models.BigIntegerField: Number,
    }
    site = Text(max_length=LONGEST_NAME, help_text="The site's name.")
    name = Name()
    line_end = serializers.ChoiceField(choices=LineEnd.choices, default=LineEnd.LOCAL)
    wanted_quality = serializers.ChoiceField(
        choices=Template.WantedQuality.choices,
        default=Template.WantedQuality.BUILT,
        help_text="A new workspace gets the newest snapshot with this quality.",
    )
    build_environment = serializers.DictField(
        child=Text(allow_blank=True, trim_whitespace=False),
        default=dict,
        help_text="Variables for builds and tests. They are not shown again.",
    )
    bisection_environment = serializers.DictField(
        child=Text(allow_blank=True, trim_whitespace=False),
        default=dict,
        help_text="Variables for commands of bisections. Everybody can read them.",
    )
    commands_have_network = Flag(
        default=True,
        help_text="Whether builds, tests and bisections reach other hosts.",
    )

    aggregate = Text(
        max_length=255,
        default="",
        allow_blank=True,
        help_text="Where its volume is created. Empty: the site chooses.",
    )

    class Meta:
        model = Template
        validators = ()  # a taken name is the action's to refuse
        fields = ("name", "site", *DEFINITION, "aggregate")

    def validate_build_environment(self, variables: dict[str, str]) -> dict[str, str]:
        for name in variables:
            if not (name.isascii() and name.isidentifier()):
                raise serializers.ValidationError(f"“{name}” names no variable.")
        return variables

    validate_bisection_environment = validate_build_environment


class TemplateBuildSerializer(serializers.Serializer[Any]):
    change = Number(
        min_value=1,
        max_value=LARGEST_CHANGE,
        allow_null=True,
        default=None,
        help_text="A submitted change; the newest if not given.",
    )
    clean = Flag(
        default=False,
        help_text="First remove everything that is not in Perforce.",
    )
    paths = serializers.ListField(
        child=Text(max_length=1024),
        default=list,
        max_length=MOST_PATHS,
        help_text="Depot paths in the view; only these are updated to the change.",
    )


class TemplateChangeSerializer(serializers.Serializer[Any]):
    title = Text(max_length=LONGEST_TITLE, allow_blank=True, required=False)
    owner = Text(required=False, help_text="A username.")
    volume_size_bytes = Number(
        required=False,
        min_value=LEAST_VOLUME_BYTES,
        max_value=MOST_VOLUME_BYTES,
        help_text="Only administrators. ONTAP resizes the volume at once, never below "
        "what it holds.",
    )


class OptionalReasonSerializer(serializers.Serializer[Any]):
    reason = Text(
        max_length=LONGEST_REASON, allow_blank=True, default="", help_text="One line."
    )


class DependentSerializer(serializers.Serializer[Any]):
    what = serializers.CharField(help_text="Such as “workspaces”.")
    number = serializers.IntegerField()
    names = serializers.ListField(
        child=serializers.CharField(), help_text="Of the first 20 of them."
    )


class TemplateNeedsSerializer(serializers.Serializer[Any]):
    can_be_deleted = serializers.BooleanField()
    needed_by = DependentSerializer(many=True, help_text="What prevents the deletion.")
    goes_with = DependentSerializer(many=True, help_text="What is deleted with it.")
    snapshots_count = serializers.IntegerField(help_text="They are deleted with it.")


class TemplateRollBackSerializer(serializers.Serializer[Any]):
    build = Number(
        min_value=1,
        max_value=2**63 - 1,
        allow_null=True,
        default=None,
        help_text="The operation of a build that failed; the newest if not given.",
    )


class ReasonSerializer(serializers.Serializer[Any]):
    reason = Text(max_length=LONGEST_REASON, help_text="One line that everybody reads.")


class SnapshotDescribeSerializer(serializers.Serializer[Any]):
    label = Text(  # type: ignore[assignment]  # what is sent, not how a field is called
        max_length=LONGEST_LABEL, allow_blank=True, required=False
    )
    notes = Text(max_length=LONGEST_NOTES, allow_blank=True, required=False)


class TemplateListQuery(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)
    site = serializers.CharField(source="site__name", required=False)
    archived = serializers.ChoiceField(
        choices=["no", "only", "all"],
        default="no",
        help_text="Whether to list archived ones.",
    )


class SnapshotListQuery(serializers.Serializer[Any]):
    template = serializers.CharField(required=False, help_text="Its id or its name.")
