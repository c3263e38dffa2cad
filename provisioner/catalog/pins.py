"""Pins as the Perforce gateway takes them."""

from __future__ import annotations

from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.gateways.perforce.types import Part


def parts_of(pinned: Snapshot | dict[str, Any]) -> list[Part]:
    """Return what lies at other changes, of a snapshot or of a build's `client`."""
    parts = pinned.parts if isinstance(pinned, Snapshot) else pinned.get("parts", [])
    return [Part(path=part["path"], change=part["change"]) for part in parts]
