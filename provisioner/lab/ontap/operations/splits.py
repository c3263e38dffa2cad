"""Split a FlexClone from its parent.

As on all-flash arrays the blocks stay shared in the filesystem. What ends is the
dependence: the parent and its snapshot may be deleted afterwards. A volume that is
taken offline keeps its progress and continues when it is online again.

Source: "Split a FlexClone volume from its parent volume"
(docs.netapp.com/us-en/ontap/volumes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.jobs import Postponed
from provisioner.lab.ontap.records import Job, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_STEPS = 20


def begin(array: Array, volume_uuid: str) -> None:
    """Start a split in the background, unless one is running."""
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        if volume.is_splitting or volume.parent_uuid is None:
            return
        array.store.save(replace(volume, is_splitting=True, split_percent=0))
        job = _job(array, volume)
    array.jobs.start(job)


def _job(array: Array, volume: Volume) -> Job:
    return array.jobs.create(
        "volume_split",
        description=f"volume clone split {volume.name}",
        svm_uuid=volume.svm_uuid,
        arguments={"volume_uuid": volume.uuid},
    )


def resume(array: Array, volume_uuid: str) -> None:
    """Continue the split of a volume that is online again."""
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        if not volume.is_splitting:
            return
        job = _job(array, volume)
    array.jobs.start(job)


def end(array: Array, volume_uuid: str) -> None:
    """Stop a split; the volume stays a clone."""
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        array.store.save(replace(volume, is_splitting=False, split_percent=0))


def run(array: Array, arguments: Mapping[str, Any]) -> None:
    """Continue to 100 percent, then detach the clone; offline, it pauses.

    Raises: Postponed when the lab stops; the split continues at the next start.
    """
    volume_uuid: str = arguments["volume_uuid"]
    percent = 0
    while percent < 100:
        if array.stopping.wait(array.settings.split_seconds / _STEPS):
            raise Postponed
        with array.store.transaction():
            volume = array.store.find(Volume, volume_uuid)
            if volume is None or not volume.is_splitting or volume.state != "online":
                return
            percent = volume.split_percent + 100 // _STEPS
            array.store.save(
                replace(volume, split_percent=percent)
                if percent < 100
                else _alone(volume)
            )


def _alone(volume: Volume) -> Volume:
    return replace(
        volume,
        is_splitting=False,
        split_percent=0,
        parent_uuid=None,
        parent_snapshot_uuid=None,
    )
