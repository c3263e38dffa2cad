"""Pins: what a build contains, as the Perforce gateway takes them."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.catalog.models import Snapshot
from provisioner.engine.results import StepResult
from provisioner.gateways.perforce.types import HaveList, Part, TreeSize


@dataclass(frozen=True, kw_only=True)
class Pin(StepResult):
    """What a build contains: a change, parts at other changes, and the client spec.

    `tree` is what the view holds, None if an earlier build had all of it.
    `ensure_client` in steps/volume.py returns it.
    """

    step = "client"
    change: int
    parts: list[Part]
    client_spec: str
    tree: TreeSize | None


def parts_of(snapshot: Snapshot) -> list[Part]:
    """Return the parts of a snapshot that are at other changes than the rest."""
    return [Part(**part) for part in snapshot.parts]


def pinned_have(snapshot: Snapshot) -> HaveList:
    """Return the have list of a client that was flushed to the snapshot."""
    return HaveList(count=snapshot.have_count, digest=snapshot.have_digest)


# Fewer files than this keep the server's locks for moments anyway.
FILES_IN_A_BATCH = 20_000


def goes_in_batches(files: int) -> bool:
    """Return whether commands over so many files are split by directory."""
    return files > FILES_IN_A_BATCH
