"""Relationships of SnapMirror and their transfers, for mirrors and for copies."""

from __future__ import annotations

import time

from provisioner.catalog.snapshot_comments import MIRROR_LABEL
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import come_back_later
from provisioner.gateways.errors import AlreadyExists, Busy
from provisioner.gateways.ontap.polling import pauses
from provisioner.gateways.ontap.types import Relationship, Transfer
from provisioner.lib.sizes import size_text

STALLED_AFTER_SECONDS = 600.0
LOOKED_AT_SECONDS = 0.5
"""The longest pause between two looks at a transfer.

From the end of a transfer to the snapshot's availability at most two seconds may pass.
"""


def ensure_policy(run: TemplateRun, policy: str, *, keep: int) -> None:
    """Ensure a policy by which the destination keeps so many snapshots.

    Another mirror may create it at the same time.
    """
    if run.ontap.has_mirror_policy(policy):
        return
    try:
        run.ontap.create_mirror_policy(policy, label=MIRROR_LABEL, keep=keep)
    except AlreadyExists as error:
        if not run.ontap.has_mirror_policy(policy):
            raise come_back_later(error) from error


def create_relationship(
    run: TemplateRun, name: str, *, source_path: str, policy: str, keep: int
) -> Relationship:
    """Create the relationship from a volume, "svm:volume", to one of this name here.

    Its policy is created as well where it is missing.
    """
    ensure_policy(run, policy, keep=keep)
    try:
        return run.ontap.create_relationship(
            name, source_path=source_path, policy=policy
        )
    except AlreadyExists as error:
        found = run.ontap.find_relationship(name)  # our own, before a lost reply
        if found is None:
            raise come_back_later(error) from error
        return found


def follow_transfer(
    run: TemplateRun, relationship_uuid: str, transfer_uuid: str
) -> Transfer | None:
    """Show a transfer's progress until it ends; None if ONTAP has forgotten it.

    Its end is noticed within half a second and one request, however long it took.

    Raises: Busy after ten minutes without a byte. It goes on, and is followed again.
    """
    moved_at, moved = time.monotonic(), -1
    for pause in pauses():
        transfer = run.ontap.find_transfer(
            relationship_uuid, transfer_uuid=transfer_uuid
        )
        if transfer is None or not transfer.is_running:
            return transfer
        if transfer.bytes != moved:
            moved_at, moved = time.monotonic(), transfer.bytes
        elif time.monotonic() - moved_at > STALLED_AFTER_SECONDS:
            raise busy(f"The transfer has stood still at {size_text(moved)}.")
        rate = transfer.bytes / max(run.seconds, 0.1)
        run.progress(
            f"{size_text(transfer.bytes)}, {size_text(int(rate))} a second",
            done=transfer.bytes,
            unit="bytes",
        )
        time.sleep(min(pause, LOOKED_AT_SECONDS))
    raise AssertionError


def busy(sentence: str) -> Busy:
    """Return the error that tries a transfer again."""
    return Busy(sentence, system="ontap", operation="transfer")
