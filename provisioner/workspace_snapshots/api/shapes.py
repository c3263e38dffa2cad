"""Serializers of snapshots of workspaces."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Number, Text
from provisioner.catalog.models import Template
from provisioner.lib.inner_paths import LONGEST_PATH
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    MOST_DAILY,
    MOST_HOURLY,
    MOST_PERCENT,
    WorkspaceSnapshot,
)
from provisioner.workspaces.models import Workspace


class WorkspaceSnapshotSerializer(serializers.ModelSerializer[WorkspaceSnapshot]):
    is_client_known = serializers.SerializerMethodField(
        help_text="Whether its client's have list and opened files were recorded."
    )

    class Meta:
        model = WorkspaceSnapshot
        fields = ("id", "name", "taken_at", "is_client_known")
        read_only_fields = fields

    def get_is_client_known(self, snapshot: WorkspaceSnapshot) -> bool:
        return snapshot.reading_id is not None


class SnapshotPolicySerializer(serializers.Serializer[Any]):
    """How many snapshots ONTAP keeps of workspaces; the most specific counts."""

    id = serializers.IntegerField(read_only=True)
    site = serializers.SlugRelatedField(slug_field="name", queryset=Site.objects.all())
    template = serializers.PrimaryKeyRelatedField(
        queryset=Template.objects.filter(archived_at=None),
        allow_null=True,
        default=None,
        help_text="The id of a template; null: every template.",
    )
    purpose = serializers.ChoiceField(
        choices=Workspace.Purpose.choices,
        allow_blank=True,
        default="",
        help_text="Empty: every purpose.",
    )
    hourly = Number(
        min_value=0,
        max_value=MOST_HOURLY,
        required=False,
        help_text="Unchanged unless given; 24 in a new policy.",
    )
    daily = Number(
        min_value=0,
        max_value=MOST_DAILY,
        required=False,
        help_text="Unchanged unless given; 7 in a new policy.",
    )
    max_percent = Number(
        min_value=0,
        max_value=MOST_PERCENT,
        required=False,
        help_text="What the snapshots of a workspace may hold, in percent of its "
        "volume. Beyond that the oldest is deleted. 0: no limit. Unchanged unless "
        "given; 0 in a new policy.",
    )


class SnapshotChoiceSerializer(serializers.Serializer[Any]):
    snapshot = Number(min_value=1, max_value=2**63 - 1, help_text="Its id.")


class TakeBackSerializer(SnapshotChoiceSerializer):
    path = Text(
        max_length=LONGEST_PATH,
        help_text="A file or directory, from the workspace's root.",
    )
