"""The recovery queue: how long deleted volumes stay, recovery, and purge."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import DELETING, LIVE, QUEUED, Job, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def retention_seconds(array: Array, volume: Volume) -> float:
    """Return how long after its deletion a queued volume is kept."""
    if volume.retention_seconds is not None:
        return volume.retention_seconds
    return array.settings.recovery_queue_seconds


def overdue(array: Array) -> list[Volume]:
    """Return the queued volumes whose time is up."""
    now = time.time()
    return [
        volume
        for volume in array.store.select(Volume, phase=QUEUED)
        if (volume.deleted_at or 0) + retention_seconds(array, volume) <= now
    ]


def keep(array: Array, volume: Volume, *, seconds: float) -> None:
    """Keep one queued volume for so long, whatever the setting says.

    Raises: OntapError 4 if it is gone.
    """
    with array.store.transaction():
        volume = _queued(array, volume)
        array.store.save(replace(volume, retention_seconds=float(seconds)))


def _queued(array: Array, volume: Volume) -> Volume:
    current = array.store.find(Volume, volume.uuid)
    if current is None or current.phase != QUEUED:
        raise OntapError("4", target="volume")
    return current


def recover(array: Array, volume: Volume) -> Job:
    """Take a volume out of the queue; it does not get its name and junction back.

    Raises: OntapError 4 if it is gone.
    """
    with array.store.transaction():
        volume = _queued(array, volume)
        array.store.save(
            replace(volume, phase=LIVE, deleted_at=None, retention_seconds=None)
        )
        return array.jobs.create(
            "nothing",
            description=f"volume recovery-queue recover {volume.name}",
            svm_uuid=volume.svm_uuid,
            arguments={},
        )


def purge(array: Array, volume: Volume) -> Job:
    """Store the job that removes a volume from the recovery queue.

    Raises: OntapError 4 if it is gone.
    """
    with array.store.transaction():
        volume = _queued(array, volume)
        array.store.save(replace(volume, phase=DELETING))
        return array.jobs.create(
            "volume_delete",
            description=f"volume recovery-queue purge {volume.name}",
            svm_uuid=volume.svm_uuid,
            arguments={"volume_uuid": volume.uuid, "force": True},
        )
