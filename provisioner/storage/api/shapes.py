"""Serializers of splits, and of what holds snapshots."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.engine.api.shapes import OperationSerializer


class SplitRefusalSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    detail = serializers.CharField(source="sentence")


class SplitSerializer(serializers.Serializer[Any]):
    """What a split of a workspace's clone would do now, and the last one."""

    is_independent = serializers.BooleanField(source="workspace.is_independent")
    split_at = serializers.DateTimeField(
        source="workspace.split_at",
        allow_null=True,
        help_text="When it was found to be independent; null: it is a clone.",
    )
    snapshot = serializers.CharField(source="snapshot.name")
    copies_bytes = serializers.IntegerField(
        allow_null=True, help_text="ONTAP's estimate; null: not measured yet."
    )
    measured_at = serializers.DateTimeField(allow_null=True)
    bytes_per_second = serializers.FloatField(
        allow_null=True,
        help_text="What earlier splits at the site reached; null: not known yet.",
    )
    seconds = serializers.FloatField(
        allow_null=True, help_text="How long it would take; null: not known yet."
    )
    room_bytes = serializers.IntegerField(
        allow_null=True, help_text="The room in the aggregate; null: not known."
    )
    is_unpinned = serializers.BooleanField(
        help_text="Whether no workspace would need the snapshot any more."
    )
    is_pruned = serializers.BooleanField(
        help_text="Whether retention would then delete the snapshot."
    )
    kept_for = serializers.ListField(
        child=serializers.CharField(),
        help_text="What keeps the snapshot besides workspaces.",
    )
    refusal = SplitRefusalSerializer(
        allow_null=True, help_text="Why it cannot be requested now; null: it can."
    )
    operation = OperationSerializer(
        allow_null=True, help_text="The last split that was requested."
    )


class HolderSerializer(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    is_pooled = serializers.BooleanField(help_text="A member of a warm pool.")


class HeldSnapshotSerializer(serializers.Serializer[Any]):
    """A published snapshot, and what holds it."""

    id = serializers.IntegerField(source="snapshot.pk")
    name = serializers.CharField(source="snapshot.name")
    change = serializers.IntegerField(source="snapshot.change")
    template = serializers.CharField(source="snapshot.template.name")
    site = serializers.CharField(source="snapshot.template.site.name")
    size_bytes = serializers.IntegerField(
        allow_null=True, help_text="Its size in ONTAP; null: not measured yet."
    )
    frees_bytes = serializers.IntegerField(
        allow_null=True, help_text="What deleting it frees, at most."
    )
    workspaces = serializers.IntegerField(help_text="How many need it.")
    holders = HolderSerializer(
        source="pins.workspaces", many=True, help_text="The first three by name."
    )
    kept_for = serializers.ListField(
        child=serializers.CharField(), help_text="What keeps it besides workspaces."
    )
    freed_by = serializers.CharField(help_text="A sentence for people.")


class HeldSnapshotQuery(serializers.Serializer[Any]):
    site = serializers.CharField(required=False, help_text="A site's name.")
