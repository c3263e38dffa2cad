"""Serializers of moves of a template's volume."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.engine.api.shapes import OperationSerializer


class MoveRefusalSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    detail = serializers.CharField(source="sentence")


class AggregateChoiceSerializer(serializers.Serializer[Any]):
    """An aggregate of the template's site, as last measured."""

    name = serializers.CharField(source="space.name")
    size_bytes = serializers.IntegerField(source="space.size_bytes")
    room_bytes = serializers.IntegerField(
        source="space.room_bytes",
        help_text="Without the part that the site keeps free.",
    )
    refusal = MoveRefusalSerializer(
        allow_null=True, help_text="Why the volume cannot go there; null: it can."
    )


class MovePreviewSerializer(serializers.Serializer[Any]):
    """What a move of a template's volume would mean now, and the last one."""

    aggregate = serializers.CharField(
        source="place.aggregate",
        allow_null=True,
        default=None,
        help_text="Where it is; null: unknown.",
    )
    tiering_policy = serializers.CharField(source="place.tiering_policy", default="")
    needed_bytes = serializers.IntegerField(
        source="place.footprint_bytes",
        allow_null=True,
        default=None,
        help_text="What it takes there, with its snapshots; null: not measured yet.",
    )
    clones = serializers.IntegerField(
        help_text="Workspaces that share blocks with it, and stay in the old aggregate."
    )
    shared_bytes = serializers.IntegerField(
        help_text="The old aggregate keeps these until the last of them is gone."
    )
    aggregates = AggregateChoiceSerializer(source="choices", many=True)
    refusal = MoveRefusalSerializer(
        allow_null=True, help_text="Why it cannot be moved now; null: it can."
    )
    operation = OperationSerializer(
        allow_null=True, help_text="The last move that was requested."
    )
    paused_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when it is paused; null: it is not."
    )


class MoveRequestSerializer(serializers.Serializer[Any]):
    aggregate = serializers.CharField(help_text="The name of the destination.")
