"""Consistency groups: volumes of an SVM, of which one snapshot is taken at one moment.

A group has existing volumes, each of which is in one group at most. The snapshot is all
or nothing: where one volume refuses, none keeps one. What it takes of each volume is an
ordinary snapshot, that clones can be made of.

Source: ``/application/consistency-groups`` and its snapshots in the ONTAP REST
reference (write-fenced, aborted after seven seconds, categories of consistency, what
becomes of the volumes); "Consistency groups" of the ONTAP documentation (volumes stay
when a group is deleted). Inferred: that snapshots of a deleted group stay in its
volumes.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import now_text
from provisioner.lab.ontap.operations import names, snapshots
from provisioner.lab.ontap.records import (
    LIVE,
    MAKING,
    ConsistencyGroup,
    GroupSnapshot,
    Job,
    Snapshot,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

MOST_VOLUMES = 80
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")


def create(array: Array, fields: Fields) -> tuple[ConsistencyGroup, Job]:
    """Check a request for a group of existing volumes, and store it with its job.

    Raises: OntapError 1, 262194, 262197, 53411865, 917927, and as `names.find_svm`
    does.
    """
    svm = names.find_svm(array, fields)
    given = fields.get("volumes") or []
    if not given:
        raise OntapError("262194", target="volumes", field="volumes")
    name = fields.get("name") or (given[0].get("name") if len(given) == 1 else None)
    if name is None:
        raise OntapError("262194", target="name", field="name")
    if not _NAME.fullmatch(name):
        raise OntapError("262197", target="name", field="name", value=name)
    if len(given) > MOST_VOLUMES:
        raise OntapError("262197", target="volumes", field="volumes", value=len(given))
    with array.store.transaction():
        if array.store.count(ConsistencyGroup, svm_uuid=svm.uuid, name=name):
            raise OntapError("1", target="name")
        members = [_member(array, each, svm_uuid=svm.uuid) for each in given]
        group = ConsistencyGroup(
            str(uuid.uuid4()),
            svm_uuid=svm.uuid,
            name=name,
            volume_uuids=[volume.uuid for volume in members],
        )
        array.store.save(group)
        job = array.jobs.create(
            "nothing",
            description="POST /api/application/consistency-groups",
            svm_uuid=svm.uuid,
            arguments={},
        )
    return group, job


def _member(array: Array, given: Fields, *, svm_uuid: str) -> Volume:
    """Return a volume that a new group names.

    Raises: OntapError 262197 (none is created here), 53411865, 917927.
    """
    action = (given.get("provisioning_options") or {}).get("action")
    if action != "add":
        field = "volumes.provisioning_options.action"
        raise OntapError("262197", target=field, field=field, value=action)
    found = array.store.select(
        Volume, svm_uuid=svm_uuid, name=given.get("name"), phase=LIVE
    )
    if not found or not given.get("name"):
        raise OntapError("917927", target="volumes.name", volume=given.get("name"))
    if (group := group_of(array, found[0])) is not None:
        raise OntapError(
            "53411865", target="volumes.name", volume=found[0].name, group=group.name
        )
    return found[0]


def group_of(array: Array, volume: Volume) -> ConsistencyGroup | None:
    """Return the group that a volume is in, or None."""
    for group in array.store.select(ConsistencyGroup, svm_uuid=volume.svm_uuid):
        if volume.uuid in group.volume_uuids:
            return group
    return None


def members_of(array: Array, group: ConsistencyGroup) -> list[Volume]:
    """Return the volumes of a group that are still there."""
    found = (array.store.find(Volume, key) for key in group.volume_uuids)
    return [volume for volume in found if volume is not None and volume.phase == LIVE]


def delete(array: Array, group: ConsistencyGroup) -> Job:
    """Delete a group and what it knows of its snapshots; its volumes keep both."""
    with array.store.transaction():
        for row in array.store.select(GroupSnapshot, group_uuid=group.uuid):
            array.store.remove(row)
        array.store.remove(group)
        return array.jobs.create(
            "nothing",
            description=f"DELETE /api/application/consistency-groups/{group.uuid}",
            svm_uuid=group.svm_uuid,
            arguments={},
        )


def take(
    array: Array, group: ConsistencyGroup, fields: Fields
) -> tuple[GroupSnapshot, Job]:
    """Check a request for a snapshot of all volumes, and store it with its job.

    Raises: OntapError 1, 262194, and as `snapshots.plan` does.
    """
    name = fields.get("name")
    if name is None:
        raise OntapError("262194", target="name", field="name")
    names.check_snapshot_name(name)
    with array.store.transaction():
        if array.store.count(GroupSnapshot, group_uuid=group.uuid, name=name):
            raise OntapError("1", target="name")
        taken = [
            snapshots.plan(array, volume, name=name, fields=_of_each(fields))
            for volume in members_of(array, group)
        ]
        row = GroupSnapshot(
            str(uuid.uuid4()),
            group_uuid=group.uuid,
            name=name,
            create_time=now_text(),
            comment=fields.get("comment"),
            consistency_type=fields.get("consistency_type") or "crash",
            snapshot_uuids=[snapshot.uuid for snapshot in taken],
        )
        array.store.save(row)
        job = array.jobs.create(
            "group_snapshot_make",
            description=f"POST {base(group)}?name={name}",
            svm_uuid=group.svm_uuid,
            arguments={"group_snapshot_uuid": row.uuid},
        )
    return row, job


def _of_each(fields: Fields) -> dict[str, Any]:
    return {
        key: fields[key] for key in ("comment", "snapmirror_label") if key in fields
    }


def make(array: Array, arguments: Fields) -> None:
    """Take all snapshots of a group while nothing else works on its volumes."""
    row = array.store.find(GroupSnapshot, arguments["group_snapshot_uuid"])
    if row is None or row.phase != MAKING:
        return
    found = [array.store.find(Snapshot, key) for key in row.snapshot_uuids]
    planned = [snapshot for snapshot in found if snapshot is not None]
    with array.busy(*(snapshot.volume_uuid for snapshot in planned)):
        for snapshot in planned:
            snapshots.make(array, {"snapshot_uuid": snapshot.uuid})
    array.store.save(replace(row, phase=LIVE))


def abandon(array: Array, arguments: Fields) -> None:
    """Drop a half-made snapshot of a group, in all its volumes."""
    row = array.store.find(GroupSnapshot, arguments["group_snapshot_uuid"])
    if row is None or row.phase != MAKING:
        return
    for key in row.snapshot_uuids:
        snapshot = array.store.find(Snapshot, key)
        if snapshot is not None:
            snapshots.drop(array, snapshot)
    array.store.remove(row)


def drop(array: Array, row: GroupSnapshot, group: ConsistencyGroup) -> Job:
    """Store the job that deletes a snapshot of a group in all its volumes."""
    with array.store.transaction():
        return array.jobs.create(
            "group_snapshot_delete",
            description=f"DELETE {base(group)}/{row.uuid}",
            svm_uuid=group.svm_uuid,
            arguments={"group_snapshot_uuid": row.uuid},
        )


def destroy(array: Array, arguments: Fields) -> None:
    """Delete a snapshot of a group. Raises: OntapError 1638555 while clones need it."""
    row = array.store.find(GroupSnapshot, arguments["group_snapshot_uuid"])
    if row is None:
        return
    for key in row.snapshot_uuids:
        snapshots.destroy(array, {"snapshot_uuid": key})
    array.store.remove(row)


def base(group: ConsistencyGroup) -> str:
    return f"/api/application/consistency-groups/{group.uuid}/snapshots"
