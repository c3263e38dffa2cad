"""Serializers of transfers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, IdOrName, Name


class TransferRequestSerializer(serializers.Serializer[Any]):
    """What to transfer, and to which snapshot."""

    snapshot = IdOrName(
        required=False,
        help_text="Its id or its name; what a new workspace would get if not given.",
    )
    name = Name(required=False, help_text="Of the new one; made up if not given.")
    changed = Flag(
        default=True, help_text="Files changed without being opened come as edits."
    )
    untracked = Flag(default=False, help_text="Untracked files come along.")
    retire = Flag(
        default=True,
        help_text="The old one goes to the trash if nothing is left to be decided.",
    )


class ConflictCommandSerializer(serializers.Serializer[Any]):
    run = serializers.CharField(help_text="In the new workspace, from its root.")
    does = serializers.CharField()


class ConflictSerializer(serializers.Serializer[Any]):
    """A file that is left for a person to decide."""

    kind = serializers.CharField()
    path = serializers.CharField(help_text="A depot path, or one from the root.")
    sentence = serializers.CharField()
    commands = ConflictCommandSerializer(many=True)


class TransferSerializer(serializers.Serializer[Any]):
    """The transfer of work into a workspace."""

    source_id = serializers.IntegerField(
        source="transfer.source_id", help_text="The workspace that it is from."
    )
    is_done = serializers.BooleanField()
    counts = serializers.DictField(
        source="transfer.counts",
        child=serializers.JSONField(),
        help_text="What arrived, by kind. `left` is what was not transferred, "
        "`left_changes` the numbers of its shelved changes.",
    )
    outcome = serializers.CharField(
        source="transfer.outcome", help_text="What became of the old one."
    )
    conflicts = ConflictSerializer(many=True)
