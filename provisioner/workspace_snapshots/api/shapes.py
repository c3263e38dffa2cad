"""Serializers of snapshots of workspaces."""

from __future__ import annotations

from rest_framework import serializers

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
