"""Consistency groups and their snapshots: ``/api/application/consistency-groups``.

Source: the ONTAP REST reference. Groups of groups, their policies, clones and restores
are not part of the lab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    choice,
    label,
    list_of,
    record,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_job
from provisioner.lab.ontap.operations import consistency_groups
from provisioner.lab.ontap.records import (
    LIVE,
    ConsistencyGroup,
    GroupSnapshot,
    Snapshot,
    Svm,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/application/consistency-groups"

_CREATE: dict[str, Kind] = {
    "name": text,
    "svm.name": text,
    "svm.uuid": text,
    "volumes": list_of(
        record(
            {
                "name": text,
                "provisioning_options": record({"action": choice("add", "create")}),
            }
        )
    ),
}
_TAKE: dict[str, Kind] = {
    "name": text,
    "comment": text,
    "consistency_type": choice("crash", "application"),
    "snapmirror_label": label,
}


def _group_view(array: Array, group: ConsistencyGroup) -> Flat:
    return {
        "uuid": group.uuid,
        "name": group.name,
        "svm.uuid": group.svm_uuid,
        "svm.name": array.store.get(Svm, group.svm_uuid).name,
        "volumes": lambda: [
            {"uuid": volume.uuid, "name": volume.name}
            for volume in consistency_groups.members_of(array, group)
        ],
    }


GROUPS: Resource[ConsistencyGroup] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("svm.uuid", "svm.name", "volumes"),
        trees=("svm", "volumes"),
    ),
    view=_group_view,
    href=lambda array, group: f"{_BASE}/{group.uuid}",
    order=("svm.name", "name"),
)


def _snapshot_view(array: Array, row: GroupSnapshot) -> Flat:
    group = array.store.get(ConsistencyGroup, row.group_uuid)
    return {
        "uuid": row.uuid,
        "name": row.name,
        "consistency_group.uuid": group.uuid,
        "consistency_group.name": group.name,
        "svm.uuid": group.svm_uuid,
        "svm.name": array.store.get(Svm, group.svm_uuid).name,
        "comment": row.comment,
        "consistency_type": row.consistency_type,
        "create_time": row.create_time,
        "is_partial": lambda: len(_kept(array, row)) < len(row.snapshot_uuids),
        "snapshot_volumes": lambda: [
            {
                "snapshot": {"uuid": kept.uuid, "name": kept.name},
                "volume": {
                    "uuid": kept.volume_uuid,
                    "name": array.store.get(Volume, kept.volume_uuid).name,
                },
            }
            for kept in _kept(array, row)
        ],
    }


def _kept(array: Array, row: GroupSnapshot) -> list[Snapshot]:
    found = (array.store.find(Snapshot, key) for key in row.snapshot_uuids)
    return [snapshot for snapshot in found if snapshot is not None]


SNAPSHOTS: Resource[GroupSnapshot] = Resource(
    FieldSet(
        keys=("uuid", "name", "consistency_group.uuid", "consistency_group.name"),
        standard=(
            *("svm.uuid", "svm.name", "comment", "consistency_type", "create_time"),
            *("is_partial", "snapshot_volumes"),
        ),
        trees=("svm", "snapshot_volumes"),
    ),
    view=_snapshot_view,
    href=lambda array, row: f"{_BASE}/{row.group_uuid}/snapshots/{row.uuid}",
    order=("create_time", "name", "uuid"),
)


def list_groups(call: Call) -> Reply:
    """List the consistency groups."""
    return collection(call, GROUPS, call.array.store.select(ConsistencyGroup))


def get_group(call: Call, uuid: str) -> Reply:
    """Return one group."""
    return instance(call, GROUPS, call.row(ConsistencyGroup, uuid))


def create_group(call: Call) -> Reply:
    """Make a group of existing volumes."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("uuid",))
    group, job = consistency_groups.create(call.array, fields)

    def created() -> dict[str, object] | None:
        return GROUPS.record(call, group, wanted=Wanted(GROUPS.fields, ()))

    return answer_job(call, job, created=created, location=f"{_BASE}/{group.uuid}")


def delete_group(call: Call, uuid: str) -> Reply:
    """Delete a group; its volumes stay."""
    group = call.row(ConsistencyGroup, uuid)
    call.refuse_query(allowed=())
    return answer_job(call, consistency_groups.delete(call.array, group))


def list_snapshots(call: Call, uuid: str) -> Reply:
    """List the snapshots of a group."""
    group = call.row(ConsistencyGroup, uuid)
    rows = call.array.store.select(GroupSnapshot, group_uuid=group.uuid, phase=LIVE)
    return collection(call, SNAPSHOTS, rows)


def take_snapshot(call: Call, uuid: str) -> Reply:
    """Take a snapshot of all volumes of a group."""
    group = call.row(ConsistencyGroup, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_TAKE, read_only=("uuid", "create_time"))
    row, job = consistency_groups.take(call.array, group, fields)

    def created() -> dict[str, object] | None:
        found = call.array.store.find(GroupSnapshot, row.uuid)
        if found is None:
            return None
        return SNAPSHOTS.record(call, found, wanted=Wanted(SNAPSHOTS.fields, ()))

    location = f"{consistency_groups.base(group)}/{row.uuid}"
    return answer_job(call, job, created=created, location=location)


def _find(
    call: Call, group_uuid: str, uuid: str
) -> tuple[ConsistencyGroup, GroupSnapshot]:
    group = call.row(ConsistencyGroup, group_uuid)
    found = call.row(GroupSnapshot, uuid)
    if found.group_uuid != group.uuid or found.phase != LIVE:
        raise OntapError("4", target="uuid")
    return group, found


def get_snapshot(call: Call, group_uuid: str, uuid: str) -> Reply:
    """Return one snapshot of a group."""
    return instance(call, SNAPSHOTS, _find(call, group_uuid, uuid)[1])


def delete_snapshot(call: Call, group_uuid: str, uuid: str) -> Reply:
    """Delete a snapshot of a group in all its volumes."""
    group, row = _find(call, group_uuid, uuid)
    call.refuse_query(allowed=())
    return answer_job(call, consistency_groups.drop(call.array, row, group))


ROUTES = (
    Route("GET", _BASE, list_groups, fields=GROUPS.fields),
    Route("POST", _BASE, create_group, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_group, fields=GROUPS.fields),
    Route("DELETE", f"{_BASE}/<uuid>", delete_group),
    Route("GET", f"{_BASE}/<uuid>/snapshots", list_snapshots, fields=SNAPSHOTS.fields),
    Route("POST", f"{_BASE}/<uuid>/snapshots", take_snapshot, body=_TAKE),
    Route(
        "GET",
        f"{_BASE}/<group_uuid>/snapshots/<uuid>",
        get_snapshot,
        fields=SNAPSHOTS.fields,
    ),
    Route("DELETE", f"{_BASE}/<group_uuid>/snapshots/<uuid>", delete_snapshot),
)
