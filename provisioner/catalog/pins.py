"""Pins as the Perforce gateway takes them."""

from __future__ import annotations

from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.gateways.perforce.types import HaveList, Part


def parts_of(pinned: Snapshot | dict[str, Any]) -> list[Part]:
    """Return what lies at other changes, of a snapshot or of a build's `client`."""
    parts = pinned.parts if isinstance(pinned, Snapshot) else pinned.get("parts", [])
    return [Part(path=part["path"], change=part["change"]) for part in parts]


def pinned_have(snapshot: Snapshot) -> HaveList:
    """Return the have list of a client that was flushed to the snapshot."""
    return HaveList(count=snapshot.have_count, digest=snapshot.have_digest)


# Fewer files than this keep the server's locks for moments anyway.
FILES_IN_A_BATCH = 20_000


def goes_in_batches(files: int) -> bool:
    """Return whether commands over so many files go directory by directory."""
    return files > FILES_IN_A_BATCH
