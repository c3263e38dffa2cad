"""Shapes that go out and come in; no decisions, and nothing is saved here."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

from django.db import models
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.reverse import reverse

from provisioner.api.errors import CODES
from provisioner.api.fields import (
    Flag,
    IdOrName,
    Name,
    Number,
    Text,
    WorkedOutOnce,
)
from provisioner.catalog import freshness
from provisioner.catalog.actions.templates import MOST_PATHS
from provisioner.catalog.api.refresh_shapes import LagSerializer, RefreshSerializer
from provisioner.catalog.models import LineEnd, Snapshot, Template
from provisioner.engine import slots
from provisioner.engine.models import Operation, Step
from provisioner.engine.workflow import WORKFLOWS
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions import heartbeats
from provisioner.leases.api.shapes import LeaseSerializer, Seconds
from provisioner.lib.names import LONGEST_NAME
from provisioner.sites.models import OpenTo
from provisioner.workspaces.models import Workspace

LARGEST_CHANGE = 2**31 - 1  # Perforce changes are signed 32-bit numbers
STEP_TITLES = {
    (str(kind), spec.name): spec.title
    for kind, specs in WORKFLOWS.items()
    for spec in specs
}


# --- what goes wrong


class LimitSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="That of its refusal.")
    title = serializers.CharField(help_text="What is limited, for people.")
    subject = serializers.CharField(help_text="Whose limit it is.")
    used = serializers.IntegerField(
        allow_null=True, help_text="null: not measured lately; it refuses nobody."
    )
    allowed = serializers.IntegerField(allow_null=True, help_text="null: no limit.")
    percent = serializers.IntegerField(allow_null=True)
    unit = serializers.ChoiceField(choices=["things", "bytes"])
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="When what ONTAP says of it was measured."
    )


class ErrorSerializer(serializers.Serializer[Any]):
    detail = serializers.CharField(help_text="What happened, for people.")
    code = serializers.ChoiceField(choices=CODES, help_text="Why, for programs.")
    fields_ = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="What is wrong with each field.",
    )
    workspace = serializers.IntegerField(
        required=False,
        help_text="Which workspace it is about, where one was asked for.",
    )
    limits = LimitSerializer(
        many=True,
        required=False,
        help_text="Where a limit is reached: how near it and the others are.",
    )

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["fields"] = fields.pop("fields_")
        return fields


# --- templates and snapshots


class PartSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="A depot path.")
    change = serializers.IntegerField()


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    parts = PartSerializer(
        many=True,
        help_text="What is at another change than the rest; nobody gets such a "
        "snapshot without choosing it.",
    )
    behind = serializers.SerializerMethodField(
        help_text="How many changes under its template's view came since; null: not "
        "known."
    )
    lint = serializers.ListField(
        child=serializers.JSONField(), help_text="What a reader should know."
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
            "lint",
            "sync_seconds",
            "build_seconds",
            "test_seconds",
            "operation",
            "created_at",
        )
        read_only_fields = fields

    def get_behind(self, snapshot: Snapshot) -> int | None:
        # Read once for a whole list: all its serializers share the context.
        if "behind" not in self.context:
            shown: Any = self.root.instance
            listed = [shown] if isinstance(shown, Snapshot) else list(shown)
            self.context["behind"] = freshness.behind_of(listed)
        behind: int | None = self.context["behind"].get(snapshot.pk)
        return behind


class PinningWorkspaceSerializer(serializers.ModelSerializer[Workspace]):
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = Workspace
        fields = ("id", "name", "owner", "state")
        read_only_fields = fields


class PinsSerializer(serializers.Serializer[Any]):
    """What keeps a snapshot from being deleted."""

    is_needed = serializers.BooleanField(help_text="false: it will be deleted.")
    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What needs it besides workspaces."
    )
    workspaces_count = serializers.IntegerField()
    workspaces = PinningWorkspaceSerializer(
        many=True, allow_null=True, help_text="null: for administrators only."
    )


class SnapshotReferenceSerializer(WorkedOutOnce, serializers.ModelSerializer[Snapshot]):
    class Meta:
        model = Snapshot
        fields = ("id", "name", "change")
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
    site = serializers.CharField(source="site.name")
    snapshot = serializers.SerializerMethodField(
        help_text="What a new workspace is cloned from; null before the first build, "
        "and where none has the quality that is wanted."
    )
    path = serializers.CharField()
    lag = serializers.SerializerMethodField(
        help_text="null: not known yet, as before the first build."
    )
    refresh = serializers.SerializerMethodField()

    class Meta:
        model = Template
        fields = (
            "id",
            "name",
            "site",
            "description",
            "state",
            "status_code",
            "status_message",
            "snapshot",
            "lag",
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
            "volume_size_bytes",
            "actual_size_bytes",
            "used_bytes",
            "used_inodes",
            "max_inodes",
            "snapshots_to_keep",
            "created_at",
        )
        read_only_fields = fields

    def get_snapshot(self, template: Any) -> DefaultSnapshot | None:
        if template.default_snapshot_id is None:
            return None
        return {
            "id": template.default_snapshot_id,
            "change": template.default_change,
            "quality": template.default_quality,
        }

    @extend_schema_field(LagSerializer(allow_null=True))
    def get_lag(self, template: Template) -> Any:
        # Read once for a whole list: all its serializers share the context.
        if "lags" not in self.context:
            self.context["lags"] = freshness.lags_of(self._shown())
        lag = self.context["lags"].get(template.pk)
        return None if lag is None else LagSerializer(lag).data

    @extend_schema_field(RefreshSerializer)
    def get_refresh(self, template: Template) -> Any:
        if "refreshes" not in self.context:
            self.context["refreshes"] = freshness.policies_of(self._shown())
        return RefreshSerializer(self.context["refreshes"][template.pk]).data

    def _shown(self) -> list[Template]:
        shown: Any = self.root.instance
        return [shown] if isinstance(shown, Template) else list(shown)


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

    class Meta:
        model = Template
        validators = ()  # a taken name is the action's to refuse
        fields = (
            "name",
            "site",
            "description",
            "view",
            "stream",
            "line_end",
            "client_options",
            "submit_options",
            "build_command",
            "build_environment",
            "bisection_environment",
            "commands_have_network",
            "build_timeout_seconds",
            "test_command",
            "test_timeout_seconds",
            "wanted_quality",
            "ignore_patterns",
            "volume_size_bytes",
            "snapshots_to_keep",
        )

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
        help_text="Remove everything first that Perforce does not know.",
    )
    paths = serializers.ListField(
        child=Text(max_length=1024),
        default=list,
        max_length=MOST_PATHS,
        help_text="Depot paths in the view that alone are brought to the change.",
    )


# --- operations


class Progress(TypedDict, total=False):
    """How far a running step is; what the last attempt showed once it has ended.

    `phase` of a sync is "planning", "receiving" or "finishing". `seconds_left` is null
    where nobody can say yet.
    """

    done: int
    total: int
    unit: str
    text: str
    phase: str
    bytes: int
    bytes_total: int
    files_per_second: float
    bytes_per_second: float
    seconds_left: float | None


class WaitSerializer(serializers.Serializer[slots.Wait]):
    """Why a queued step has not begun: others come first, or a pause."""

    server = serializers.CharField(help_text="The name of the Perforce server.")
    before = serializers.IntegerField(help_text="How many come before it.")
    is_paused = serializers.BooleanField()
    sentence = serializers.CharField(help_text="All of it for people.")


class StepSerializer(WorkedOutOnce, serializers.ModelSerializer[Step]):
    title = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField(help_text="Any of these, or none.")
    seconds = serializers.FloatField(
        allow_null=True, help_text="How long its last attempt took."
    )
    wait = serializers.SerializerMethodField(
        help_text="null unless it waits for its turn at its Perforce server."
    )

    class Meta:
        model = Step
        fields = (
            "name",
            "title",
            "state",
            "attempt",
            "started_at",
            "ended_at",
            "seconds",
            "progress",
            "wait",
            "error_code",
            "error_message",
        )
        read_only_fields = fields

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_wait(self, step: Step) -> Any:
        wait = slots.wait_of(step)
        return None if wait is None else WaitSerializer(wait).data

    def get_title(self, step: Step) -> str:
        return STEP_TITLES.get((step.operation.kind, step.name), step.name)

    def get_progress(self, step: Step) -> Progress:
        progress: Progress = step.progress
        return progress


class OperationSerializer(serializers.ModelSerializer[Operation]):
    requested_by = serializers.CharField(source="requested_by.username")
    findings = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="Unsubmitted work that was found, by kind: what stopped a "
        "retirement, or what it rescued or discarded.",
    )
    steps = StepSerializer(many=True)

    class Meta:
        model = Operation
        fields = (
            "id",
            "kind",
            "workspace",
            "template",
            "state",
            "status_code",
            "status_message",
            "findings",
            "requested_by",
            "created_at",
            "ended_at",
            "steps",
        )
        read_only_fields = fields


class OperationSummarySerializer(WorkedOutOnce, serializers.ModelSerializer[Operation]):
    """Where the newest operation is: enough for a progress line."""

    steps_total = serializers.SerializerMethodField()
    steps_done = serializers.SerializerMethodField()
    current_steps = serializers.SerializerMethodField(
        help_text="Those queued, running, to be tried again, or failed."
    )

    class Meta:
        model = Operation
        fields = ("id", "kind", "state", "steps_total", "steps_done", "current_steps")
        read_only_fields = fields

    def get_steps_total(self, operation: Operation) -> int:
        return len(operation.steps.all())

    def get_steps_done(self, operation: Operation) -> int:
        settled = (Step.State.DONE, Step.State.SKIPPED)
        return sum(step.state in settled for step in operation.steps.all())

    @extend_schema_field(StepSerializer(many=True))
    def get_current_steps(self, operation: Operation) -> Any:
        idle = (Step.State.WAITING, Step.State.DONE, Step.State.SKIPPED)
        current = [step for step in operation.steps.all() if step.state not in idle]
        return StepSerializer(current, many=True).data


# --- workspaces


class WorkspaceLinks(TypedDict):
    self: str
    template: str
    operations: str


class Equals(TypedDict):
    """`client_verified`: the have list of the client was compared with the snapshot."""

    change: int
    files: int
    have_digest: str
    client_verified: bool
    sentence: str


class Start(TypedDict):
    """`seconds_saved`: what making it had taken before; null where it was cold."""

    warm: bool
    cold_because: str | None
    seconds_saved: float | None
    sentence: str


def _sentence_of_what_it_equals(workspace: Workspace, *, is_proven: bool) -> str:
    snapshot = workspace.snapshot
    said = (
        f"Change {snapshot.change} of {workspace.template.name} with what its build "
        f"made; its {snapshot.have_count:,} versioned files were compared with the "
        "depot before the snapshot was taken."
    )
    if is_proven:
        said += " The have list of its client equals that of the snapshot."
    return said


class WorkspaceSerializer(WorkedOutOnce, serializers.ModelSerializer[Workspace]):
    owner = serializers.CharField(source="owner.username")
    template = serializers.CharField(source="template.name")
    template_id = serializers.IntegerField()
    site = serializers.CharField(source="site.name")
    snapshot = SnapshotReferenceSerializer()
    change = serializers.IntegerField(
        source="snapshot.change", help_text="What it equals when it is new."
    )
    equals = serializers.SerializerMethodField(
        help_text="What it equals when it is new, and how far that was verified."
    )
    path = serializers.CharField(help_text="Where its hosts see it.")
    client = serializers.CharField(
        source="client_name", help_text="The Perforce client, “” where it has none."
    )
    client_type = serializers.CharField(
        help_text="Of that client; “” is writeable, or none."
    )
    p4port = serializers.CharField(source="site.perforce_server.p4port_for_people")
    p4_user = serializers.CharField()
    open_to = serializers.ChoiceField(
        choices=OpenTo.choices, help_text="Who may enter its root directory."
    )
    ownership = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="Who made the files the owner's, and how that was checked.",
    )
    reconcile = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="What differed from the depot, where that was asked for.",
    )
    start = serializers.SerializerMethodField(
        help_text="Whether it lay ready in a warm pool when it was asked for; "
        "`cold_because` is one of no_pool, reconcile, other_snapshot, pool_renewed, "
        "pool_resting and pool_empty."
    )
    lease = serializers.SerializerMethodField()
    operation = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = Workspace
        fields = (
            "id",
            "name",
            "state",
            "status_code",
            "status_message",
            "owner",
            "purpose",
            "site",
            "template",
            "template_id",
            "snapshot",
            "change",
            "equals",
            "path",
            "client",
            "client_type",
            "p4port",
            "p4_user",
            "uid",
            "gid",
            "open_to",
            "ownership",
            "reconcile",
            "created_at",
            "ready_at",
            "trashed_at",
            "purge_at",
            "retired_at",
            "unique_bytes",
            "used_inodes",
            "max_inodes",
            "start",
            "lease",
            "operation",
            "links",
        )
        read_only_fields = fields

    @extend_schema_field(LeaseSerializer)
    def get_lease(self, workspace: Workspace) -> Any:
        # Read once for a whole list: all its serializers share the context.
        policies = self.context.get("policies") or lease_queries.saved_policies()
        self.context["policies"] = policies
        policy = policies.of_workspace(workspace)
        deadline = lease_queries.deadline_of(workspace, policy, timezone.now())
        return LeaseSerializer(deadline).data

    @extend_schema_field(OperationSummarySerializer(allow_null=True))
    def get_operation(self, workspace: Any) -> Any:
        newest = next(iter(workspace.newest_operations), None)
        return None if newest is None else OperationSummarySerializer(newest).data

    def get_equals(self, workspace: Workspace) -> Equals:
        snapshot = workspace.snapshot
        is_proven = workspace.ready_at is not None and bool(workspace.client_name)
        return {
            "change": snapshot.change,
            "files": snapshot.have_count,
            "have_digest": snapshot.have_digest,
            "client_verified": is_proven,
            "sentence": _sentence_of_what_it_equals(workspace, is_proven=is_proven),
        }

    def get_start(self, workspace: Workspace) -> Start:
        return {
            "warm": workspace.is_warm,
            "cold_because": workspace.cold_reason or None,
            "seconds_saved": workspace.seconds_saved,
            "sentence": workspace.start_sentence,
        }

    def get_links(self, workspace: Workspace) -> WorkspaceLinks:
        request = self.context.get("request")
        workspaces = reverse("api:operation-list", request=request)
        return {
            "self": reverse("api:workspace-detail", [workspace.pk], request=request),
            "template": reverse(
                "api:template-detail", [workspace.template_id], request=request
            ),
            "operations": f"{workspaces}?workspace={workspace.pk}",
        }


class WorkspaceCreateSerializer(WorkedOutOnce):
    template = IdOrName(help_text="Its id or its name.")
    site = Text(
        max_length=LONGEST_NAME,
        required=False,
        help_text="Needed where several sites have a template of that name.",
    )
    name = Name(required=False, help_text="Made up if not given.")
    purpose = serializers.ChoiceField(
        choices=Workspace.Purpose.choices, default=Workspace.Purpose.DEVELOPMENT
    )
    snapshot = IdOrName(
        required=False, help_text="Its id or its name; the newest if not given."
    )
    quality = serializers.ChoiceField(
        choices=Template.WantedQuality.choices,
        required=False,
        help_text="The newest snapshot with at least this quality; instead of one.",
    )
    reconcile = Flag(
        default=False, help_text="Compare all files with the depot before it is ready."
    )
    lease = Seconds(
        required=False, help_text="Seconds until it is retired; the usual if not given."
    )
    heartbeat_seconds = Number(
        required=False,
        min_value=heartbeats.SHORTEST_SECONDS,
        max_value=heartbeats.LONGEST_SECONDS,
        help_text="Its lease ends early if it gets no heartbeat for so long, counted "
        "from when it is ready, or has failed.",
    )
