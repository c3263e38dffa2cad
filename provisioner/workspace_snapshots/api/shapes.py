"""Serializers of snapshots of workspaces."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Number, Text
from provisioner.lib.inner_paths import LONGEST_PATH
from provisioner.workspace_snapshots.models import WorkspaceSnapshot


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


class SnapshotChoiceSerializer(serializers.Serializer[Any]):
    snapshot = Number(min_value=1, max_value=2**63 - 1, help_text="Its id.")


class TakeBackSerializer(SnapshotChoiceSerializer):
    path = Text(
        max_length=LONGEST_PATH,
        help_text="A file or directory, from the workspace's root.",
    )
