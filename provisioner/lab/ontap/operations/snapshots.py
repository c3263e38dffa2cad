"""Create, change and delete snapshots."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.dataplane import btrfs
from provisioner.lab.ontap.dataplane.trees import SNAPSHOTS
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import now_text
from provisioner.lab.ontap.operations import names, snapshot_directories
from provisioner.lab.ontap.records import (
    DELETING,
    LIVE,
    MAKING,
    Destination,
    Job,
    Snapshot,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]


def create(array: Array, volume: Volume, fields: Fields) -> tuple[Snapshot, Job]:
    """Check a request for a snapshot and store it with its job.

    Raises: OntapError 525059, 525062, 524479, 1638461, 1638477, 1638518.
    """
    name = fields.get("name")
    if name is None:
        raise OntapError("262194", target="name", field="name")
    names.check_snapshot_name(name)
    with array.store.transaction():
        snapshot = plan(array, volume, name=name, fields=fields)
        job = array.jobs.create(
            "snapshot_make",
            description=f"POST {_base(volume.uuid)}/?name={name}",
            svm_uuid=volume.svm_uuid,
            arguments={"snapshot_uuid": snapshot.uuid},
        )
    return snapshot, job


def plan(
    array: Array, volume: Volume, *, name: str, fields: Fields | None = None
) -> Snapshot:
    """Store the row of a new snapshot, as part of the caller's transaction."""
    if volume.type == "dp":
        raise OntapError("1638461", target="name")
    if volume.state != "online" or volume.is_splitting:
        raise OntapError("524479", volume=volume.name)
    taken = array.store.select(Snapshot, volume_uuid=volume.uuid)
    if any(row.name == name and row.phase != DELETING for row in taken):
        raise OntapError("525059", target="name", name=name)
    if len(taken) >= array.settings.max_snapshots_per_volume:
        raise OntapError("525062", volume=volume.name)
    fields = fields or {}
    snapshot = Snapshot(
        str(uuid.uuid4()),
        volume_uuid=volume.uuid,
        name=name,
        create_time=fields.get("create_time") or now_text(),
        version_uuid=str(uuid.uuid4()),
        comment=fields.get("comment"),
        snapmirror_label=fields.get("snapmirror_label"),
        expiry_time=fields.get("expiry_time"),
        logical_bytes=array.usage.measured_bytes(volume),
        files=array.usage.measured_files(volume),
        saved_bytes=int(str(volume.efficiency.get("saved", 0))),
    )
    array.store.save(snapshot)
    return snapshot


def make(array: Array, arguments: Fields) -> None:
    """Copy the volume's files and show the snapshot."""
    snapshot = array.store.find(Snapshot, arguments["snapshot_uuid"])
    if snapshot is None or snapshot.phase != MAKING:
        return
    volume = array.store.get(Volume, snapshot.volume_uuid)
    path = array.snapshot_path(snapshot)
    with array.busy(volume.uuid):
        try:
            array.plane.remove(path)
            _take_image(array, volume, snapshot)
        except OSError as error:
            raise OntapError("524479", volume=volume.name) from error
        array.store.save(replace(snapshot, phase=LIVE))
        snapshot_directories.refresh(array, volume.uuid)


def abandon(array: Array, arguments: Fields) -> None:
    """Drop a half-made snapshot."""
    snapshot = array.store.find(Snapshot, arguments["snapshot_uuid"])
    if snapshot is not None and snapshot.phase == MAKING:
        array.plane.remove(array.snapshot_path(snapshot))
        array.store.remove(snapshot)


def _take_image(array: Array, volume: Volume, snapshot: Snapshot) -> None:
    """Copy the volume; a junction inside it becomes an empty directory in the copy.

    Likewise .snapshot: its mount is not part of the volume.
    """
    source, target = array.volume_path(volume), array.snapshot_path(snapshot)
    shows = (source / SNAPSHOTS).exists()
    links = []
    if array.namespace.method == "symlink":
        links = [
            os.path.relpath(row.junction_path or "", volume.junction_path or "/")
            for row in array.store.select(Volume, junction_parent_uuid=volume.uuid)
        ]
    array.plane.copy(source, target=target, read_only=not links and not shows)
    for inside in links:
        if (target / inside).is_symlink():
            (target / inside).unlink()
            (target / inside).mkdir()
    if shows:
        (target / SNAPSHOTS).rmdir()
    if (links or shows) and array.plane.method == "btrfs":
        btrfs.set_read_only(target)


def request_change(
    array: Array, volume: Volume, snapshot: Snapshot, fields: Fields
) -> Job:
    """Check a change of a snapshot and store its job.

    Raises: OntapError 525059, 1638477, 1638518, 1638522.
    """
    name = fields.get("name")
    with array.store.transaction():
        if name is not None and name != snapshot.name:
            names.check_snapshot_name(name)
            if volume.type == "dp":
                raise OntapError("1638522", target="name")
            if array.store.count(Snapshot, volume_uuid=volume.uuid, name=name):
                raise OntapError("525059", target="name", name=name)
        return array.jobs.create(
            "snapshot_change",
            description=_description("PATCH", snapshot),
            svm_uuid=volume.svm_uuid,
            arguments={"snapshot_uuid": snapshot.uuid, "changes": dict(fields)},
        )


def change(array: Array, arguments: Fields) -> None:
    """Change name, comment, label or expiry of a snapshot."""
    with array.store.transaction():
        snapshot = array.store.find(Snapshot, arguments["snapshot_uuid"])
        if snapshot is not None:
            array.store.save(replace(snapshot, **arguments["changes"]))
    if snapshot is not None:
        snapshot_directories.refresh(array, snapshot.volume_uuid)


def delete(array: Array, volume: Volume, snapshot: Snapshot) -> Job:
    """Store the job that deletes the snapshot; its rules are checked in the job."""
    if volume.type == "dp":
        raise OntapError("1638521")
    with array.store.transaction():
        return array.jobs.create(
            "snapshot_delete",
            description=_description("DELETE", snapshot),
            svm_uuid=volume.svm_uuid,
            arguments={"snapshot_uuid": snapshot.uuid},
        )


def destroy(array: Array, arguments: Fields) -> None:
    """Remove a snapshot that no clone needs. Raises: OntapError 1638555."""
    with array.store.transaction():
        snapshot = array.store.find(Snapshot, arguments["snapshot_uuid"])
        if snapshot is None:
            return
        volume = array.store.get(Volume, snapshot.volume_uuid)
        if owners_of(array, snapshot):
            raise OntapError(
                "1638555",
                snapshot=snapshot.name,
                volume=volume.name,
                svm=names.svm_name(array, volume),
            )
        array.store.save(replace(snapshot, phase=DELETING))
    drop(array, snapshot)


def drop(array: Array, snapshot: Snapshot) -> None:
    """Remove a snapshot's files and row, whoever made it."""
    array.store.save(replace(snapshot, phase=DELETING))
    snapshot_directories.refresh(array, snapshot.volume_uuid)
    array.trash.put(array.snapshot_path(snapshot))
    array.store.remove(snapshot)


def owners_of(array: Array, snapshot: Snapshot) -> list[str]:
    """Return what holds the snapshot: clones, SnapMirror; empty if it is free."""
    owners = []
    if array.store.count(Volume, parent_snapshot_uuid=snapshot.uuid):
        owners.append("volume_clone")
    for row in array.store.select(Destination, source_uuid=snapshot.volume_uuid):
        if row.base_snapshot_uuid == snapshot.uuid:
            owners.append("snapmirror")
            break
    return owners


def _description(method: str, snapshot: Snapshot) -> str:
    return f"{method} {_base(snapshot.volume_uuid)}/{snapshot.uuid}"


def _base(volume_uuid: str) -> str:
    return f"/api/storage/volumes/{volume_uuid}/snapshots"
