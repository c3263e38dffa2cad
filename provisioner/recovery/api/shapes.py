"""Serializers of recoveries."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import Flag, IdOrName, Name


class RecoverySerializer(serializers.Serializer[Any]):
    """From which site's copy, and what an administrator confirms."""

    site = IdOrName(help_text="The copy's site: its id or its name.")
    name = Name(required=False, help_text="The new one's name. Default: generated.")
    original_is_stopped = Flag(
        default=False,
        help_text="An administrator confirms that nobody works in the original. "
        "Required while the original's site answers.",
    )
