"""Serializers of transfers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, IdOrName, Name


class TransferRequestSerializer(serializers.Serializer[Any]):
    """What to transfer, and to which snapshot."""

    snapshot = IdOrName(
        required=False,
        help_text="Its id or name. Default: the snapshot that new workspaces get.",
    )
    name = Name(required=False, help_text="The new one's name. Default: generated.")
    changed = Flag(
        default=True,
        help_text="Transfer files changed without being opened, as edits.",
    )
    untracked = Flag(default=False, help_text="Transfer untracked files, too.")
    retire = Flag(
        default=True,
        help_text="Move the source to the trash if there are no conflicts.",
    )


class ConflictCommandSerializer(serializers.Serializer[Any]):
    run = serializers.CharField(help_text="In the new workspace, from its root.")
    does = serializers.CharField()


class ConflictSerializer(serializers.Serializer[Any]):
    """A file that needs a person's decision."""

    kind = serializers.CharField()
    path = serializers.CharField(
        source="shown_path", help_text="A depot path, or one from the root."
    )
    sentence = serializers.CharField(source="shown_sentence")
    commands = ConflictCommandSerializer(many=True)


class TransferSerializer(serializers.Serializer[Any]):
    """The transfer of work into a workspace."""

    source_id = serializers.IntegerField(
        source="transfer.source_id", help_text="The source workspace."
    )
    is_done = serializers.BooleanField()
    counts = serializers.DictField(
        source="transfer.counts",
        child=serializers.JSONField(),
        help_text="Number of transferred items by kind. `left` counts what was not "
        "transferred, `left_changes` lists the source's shelved changes.",
    )
    outcome = serializers.CharField(
        source="transfer.outcome", help_text="What happened to the source workspace."
    )
    conflicts = ConflictSerializer(many=True)
