"""Serializers of clones of workspaces."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Name, Number, Text


class WorkspaceCloneSerializer(serializers.Serializer[Any]):
    """For whom, and as of when."""

    name = Name(required=False, help_text="The clone's name. Default: generated.")
    owner = Text(
        required=False,
        max_length=150,
        help_text="The username of who gets it, and may see the workspace. Default: "
        "you.",
    )
    snapshot = Number(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The id of one of its snapshots. Default: as it is now.",
    )
