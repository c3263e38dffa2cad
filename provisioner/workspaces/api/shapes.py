"""Serializers of workspaces, and of queries about them."""

from __future__ import annotations

from typing import Any, TypedDict

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.reverse import reverse

from provisioner.api.fields import WorkedOutOnce
from provisioner.api.waiting import WaitQuery
from provisioner.catalog.api.shapes import SnapshotReferenceSerializer
from provisioner.engine.api.shapes import OperationSummarySerializer
from provisioner.sites.models import OpenTo
from provisioner.workspaces.models import Unsubmitted, Workspace
from provisioner.workspaces.queries import deadline_of


class WarningSerializer(WorkedOutOnce):
    at = serializers.DateTimeField()
    seconds_before = serializers.IntegerField()


class LeaseSerializer(WorkedOutOnce):
    """When and how a workspace ends, as its page and mails show it."""

    ends_at = serializers.DateTimeField(
        allow_null=True, help_text="Null: it has no lease, or one without an end."
    )
    kept_because = serializers.CharField(
        help_text="Why it is kept without an end, or “”."
    )
    maximum_seconds = serializers.IntegerField(
        allow_null=True, help_text="The maximum lease from now; null: no limit."
    )
    is_extendable = serializers.BooleanField()
    is_over = serializers.BooleanField(help_text="It has ended and is not retired yet.")
    warns_at = WarningSerializer(many=True, help_text="Mails still to come.")
    then = serializers.ChoiceField(
        choices=[
            ("trash", "It goes to the trash."),
            ("remove", "It is purged."),
        ]
    )
    restorable_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when the trash keeps it."
    )
    heartbeat_due_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When it ends without another heartbeat; null: no heartbeat is "
        "expected.",
    )
    sentence = serializers.CharField(help_text="All of this as a sentence.")


class WorkspaceLinks(TypedDict):
    self: str
    template: str
    operations: str


class Verification(TypedDict):
    """`client_verified`: the have list of the client was compared with the snapshot."""

    change: int
    files: int
    have_digest: str
    client_verified: bool
    sentence: str


class Start(TypedDict):
    """`seconds_saved`: how long provisioning took; null if it was not claimed."""

    warm: bool
    cold_because: str | None
    seconds_saved: float | None
    sentence: str


def _verification_sentence(workspace: Workspace, *, is_proven: bool) -> str:
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
        source="snapshot.change", help_text="Its contents when it was created."
    )
    verification = serializers.SerializerMethodField(
        help_text="Its contents when it was created, and how they were verified."
    )
    file_bytes = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="What files can take of its volume: its size without the reserve.",
    )
    path = serializers.CharField(help_text="Where its hosts see it.")
    client = serializers.CharField(
        source="client_name", help_text="The Perforce client, “” where it has none."
    )
    client_type = serializers.CharField(
        help_text="The client's type; “”: writeable, or no client."
    )
    p4port = serializers.CharField(source="perforce_server.p4port_for_people")
    perforce_server = serializers.CharField(
        source="perforce_server.name", help_text="The server of its client."
    )
    p4_user = serializers.CharField()
    open_to = serializers.ChoiceField(
        choices=OpenTo.choices, help_text="Who may enter its root directory."
    )
    ownership = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="What set the owner of the files, and how that was verified.",
    )
    reconcile = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="The differences from the depot, if requested.",
    )
    start = serializers.SerializerMethodField(
        help_text="Whether it was claimed from a warm pool; "
        "`cold_because` is one of no_pool, reconcile, other_snapshot, pool_renewed, "
        "pool_resting and pool_empty; null for a template without pools."
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
            "site_because",
            "template",
            "template_id",
            "snapshot",
            "change",
            "verification",
            "path",
            "client",
            "client_type",
            "p4port",
            "perforce_server",
            "routed_because",
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
            "actual_size_bytes",
            "file_bytes",
            "used_bytes",
            "snapshot_bytes",
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
        # All serializers of a list share the context: the policies are read once.
        known = self.context.setdefault("read", {})
        deadline = deadline_of(workspace, now=timezone.now(), known=known)
        return LeaseSerializer(deadline).data

    @extend_schema_field(OperationSummarySerializer(allow_null=True))
    def get_operation(self, workspace: Any) -> Any:
        newest = next(iter(workspace.subject.newest_operations), None)
        return None if newest is None else OperationSummarySerializer(newest).data

    def get_verification(self, workspace: Workspace) -> Verification:
        snapshot = workspace.snapshot
        is_proven = workspace.ready_at is not None and bool(workspace.client_name)
        return {
            "change": snapshot.change,
            "files": snapshot.have_count,
            "have_digest": snapshot.have_digest,
            "client_verified": is_proven,
            "sentence": _verification_sentence(workspace, is_proven=is_proven),
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


class WorkspaceRetireQuery(WaitQuery):
    unsubmitted = serializers.ChoiceField(
        choices=Unsubmitted.choices,
        default=Unsubmitted.REFUSE,
        help_text="What to do with unsubmitted work.",
    )
    purge = serializers.BooleanField(
        default=False, help_text="Purge it at once, without the trash."
    )


class WorkspaceListQuery(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=Workspace.State.choices, required=False)
    template = serializers.CharField(required=False, help_text="Its id or its name.")
    name = serializers.CharField(required=False)
    site = serializers.CharField(
        source="site__name", required=False, help_text="Its name."
    )
    owner = serializers.CharField(
        source="owner__username", required=False, help_text="A username."
    )
    retired = serializers.BooleanField(
        default=True, help_text="false: without what was purged."
    )
