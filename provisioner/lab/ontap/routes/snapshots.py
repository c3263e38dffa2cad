"""Snapshots of a volume: ``/api/storage/volumes/{uuid}/snapshots``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import Kind, label, text
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_job
from provisioner.lab.ontap.operations import snapshots
from provisioner.lab.ontap.operations.snapshot_directories import snapshots_of
from provisioner.lab.ontap.records import LIVE, Snapshot, Svm, Volume
from provisioner.lab.ontap.routes.volumes import find_volume, refuse

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, snapshot: Snapshot) -> Flat:
    volume = array.store.get(Volume, snapshot.volume_uuid)
    svm = array.store.get(Svm, volume.svm_uuid)
    return {
        "uuid": snapshot.uuid,
        "name": snapshot.name,
        "volume.uuid": volume.uuid,
        "volume.name": volume.name,
        "svm.uuid": svm.uuid,
        "svm.name": svm.name,
        "create_time": snapshot.create_time,
        "comment": snapshot.comment,
        "snapmirror_label": snapshot.snapmirror_label,
        "expiry_time": snapshot.expiry_time,
        "version_uuid": snapshot.version_uuid,
        "owners": lambda: snapshots.owners_of(array, snapshot) or None,
        "size": snapshot.logical_bytes - snapshot.saved_bytes,
        "logical_size": snapshot.logical_bytes,
        "dedup_savings": snapshot.saved_bytes,
    }


SNAPSHOTS: Resource[Snapshot] = Resource(
    FieldSet(
        keys=("uuid", "name", "volume.uuid", "volume.name"),
        standard=(
            "svm.uuid",
            "svm.name",
            "create_time",
            "comment",
            "snapmirror_label",
            "expiry_time",
            "version_uuid",
            "owners",
            "size",
            "logical_size",
            "dedup_savings",
        ),
        trees=(
            "state",
            "snaplock",
            "snaplock_expiry_time",
            "provenance_volume",
            "compress_savings",
            "vbn0_savings",
            "reclaimable_space",
            "delta",
        ),
    ),
    view=_view,
    href=lambda array, row: (
        f"/api/storage/volumes/{row.volume_uuid}/snapshots/{row.uuid}"
    ),
    order=("volume.name", "create_time", "name", "uuid"),
)

_CHANGE: dict[str, Kind] = {
    "name": text,
    "comment": text,
    "snapmirror_label": label,
    "expiry_time": text,
}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "svm": text,
    "svm.name": text,
    "svm.uuid": text,
    "volume.name": text,
    "volume.uuid": text,
}
_READ_ONLY = ("uuid", "create_time", "owners", "size", "svm", "volume", "version_uuid")


def list_snapshots(call: Call, volume_uuid: str) -> Reply:
    """List the snapshots of a volume, or with ``*`` those of all volumes."""
    store = call.array.store
    if volume_uuid == "*":
        visible = {row.uuid for row in store.select(Volume, phase=LIVE)}
        rows = [
            row
            for row in store.select(Snapshot, phase=LIVE)
            if row.volume_uuid in visible
        ]
    else:
        volume = find_volume(call, volume_uuid)
        rows = [
            replace(row, volume_uuid=volume.uuid)
            for row in snapshots_of(call.array, volume)
        ]
    return collection(call, SNAPSHOTS, rows)


def _find(call: Call, volume_uuid: str, uuid: str) -> tuple[Volume, Snapshot]:
    volume = find_volume(call, volume_uuid)
    snapshot = call.array.store.find(Snapshot, uuid)
    if (
        snapshot is None
        or snapshot.phase != LIVE
        or snapshot.volume_uuid != volume.uuid
    ):
        raise OntapError("4", target="uuid")
    return volume, snapshot


def get_snapshot(call: Call, volume_uuid: str, uuid: str) -> Reply:
    """Return one snapshot."""
    return instance(call, SNAPSHOTS, _find(call, volume_uuid, uuid)[1])


def create_snapshot(call: Call, volume_uuid: str) -> Reply:
    """Take a snapshot."""
    volume = find_volume(call, volume_uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=_READ_ONLY)
    base = f"/api/storage/volumes/{volume.uuid}/snapshots"
    try:
        snapshot, job = snapshots.create(call.array, volume, fields)
    except OntapError as error:
        return refuse(call, error, description=f"POST {base}")
    location = f"{base}/?name={snapshot.name}"
    if call.array.settings.location == "uuid":
        location = f"{base}/{snapshot.uuid}"

    def created() -> dict[str, object] | None:
        row = call.array.store.find(Snapshot, snapshot.uuid)
        if row is None:
            return None
        return SNAPSHOTS.record(call, row, wanted=Wanted(SNAPSHOTS.fields, ()))

    return answer_job(call, job, created=created, location=location)


def change_snapshot(call: Call, volume_uuid: str, uuid: str) -> Reply:
    """Change name, comment, label or expiry."""
    volume, snapshot = _find(call, volume_uuid, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=_READ_ONLY)
    job = snapshots.request_change(call.array, volume, snapshot, fields)
    return answer_job(call, job)


def delete_snapshot(call: Call, volume_uuid: str, uuid: str) -> Reply:
    """Delete a snapshot; while a clone needs it, the job fails."""
    volume, snapshot = _find(call, volume_uuid, uuid)
    call.refuse_query(allowed=())
    return answer_job(call, snapshots.delete(call.array, volume, snapshot))


ROUTES = (
    Route(
        "GET",
        "/api/storage/volumes/<volume_uuid>/snapshots",
        list_snapshots,
        fields=SNAPSHOTS.fields,
    ),
    Route(
        "POST",
        "/api/storage/volumes/<volume_uuid>/snapshots",
        create_snapshot,
        body=_CREATE,
    ),
    Route(
        "GET",
        "/api/storage/volumes/<volume_uuid>/snapshots/<uuid>",
        get_snapshot,
        fields=SNAPSHOTS.fields,
    ),
    Route(
        "PATCH",
        "/api/storage/volumes/<volume_uuid>/snapshots/<uuid>",
        change_snapshot,
        body=_CHANGE,
    ),
    Route(
        "DELETE", "/api/storage/volumes/<volume_uuid>/snapshots/<uuid>", delete_snapshot
    ),
)
