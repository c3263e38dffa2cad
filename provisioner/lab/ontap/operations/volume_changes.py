"""Changes of volumes: what a PATCH may contain, and how it is applied."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import (
    efficiency,
    junctions,
    limits,
    moves,
    names,
    snapshot_directories,
    snapshot_policies,
    splits,
)
from provisioner.lab.ontap.operations.volumes import (
    check_policies,
    check_room,
    check_size,
    remembered_in,
)
from provisioner.lab.ontap.records import (
    LIVE,
    Destination,
    Job,
    Relationship,
    Snapshot,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

STATES = ("online", "offline", "restricted")

# What may be changed in the same call that starts a split.
_WITH_SPLIT = ("clone.split_initiated", "nas.path", "comment", "name", "state")


def request(array: Array, volume: Volume, fields: Fields) -> Job:
    """Check a change and store its job.

    Raises: OntapError with the code of the first rule that it breaks.
    """
    with array.store.transaction():
        _check(array, volume, fields)
        return array.jobs.create(
            "volume_change",
            description=f"PATCH /api/storage/volumes/{volume.uuid}",
            svm_uuid=volume.svm_uuid,
            arguments={"volume_uuid": volume.uuid, "changes": dict(fields)},
        )


def check(array: Array, volume: Volume, fields: Fields) -> None:
    """Only check a change (``validate_only``)."""
    with array.store.transaction():
        _check(array, volume, fields)


def _check(array: Array, volume: Volume, fields: Fields) -> None:
    svm = names.svm_name(array, volume)
    _check_combination(fields)
    if "name" in fields:
        names.check_volume_name(fields["name"])
        _check_name_free(array, volume, fields["name"])
    state = fields.get("state", volume.state)
    if state not in STATES:
        raise OntapError("918652", target="state", value=state)
    path = fields.get("nas.path")
    if path:
        junctions.check_junction_path(path)
    needs_online = {"nas.path", "nas.uid", "nas.gid", "nas.unix_permissions"}
    if state != "online" and path != "" and needs_online & set(fields):
        raise OntapError("9437885", svm=svm, name=volume.name)
    if "size" in fields:
        check_size(array, fields["size"])
        limits.check_holds(array, volume, size=fields["size"])
        if volume.guarantee == "volume":
            needed = max(0, fields["size"] - volume.size_bytes)
            check_room(array, needed, aggregate=volume.aggregate)
    if fields.get("guarantee.type") == "volume" and volume.guarantee != "volume":
        check_room(array, volume.size_bytes, aggregate=volume.aggregate)
    if _names_snapshot_policy(fields):
        snapshot_policies.chosen(array, fields, svm_uuid=volume.svm_uuid)
    if "nas.export_policy.name" in fields or "nas.export_policy.id" in fields:
        names.find_export_policy(array, fields, svm_uuid=volume.svm_uuid)
    if not 0 <= fields.get("space.snapshot.reserve_percent", 0) <= 90:
        raise OntapError("917835", target="space.snapshot.reserve_percent")
    if "clone.split_initiated" in fields:
        _check_split(array, volume, wanted=fields["clone.split_initiated"])
    check_policies(array, fields)
    efficiency.check(array, volume, fields)
    limits.check(array, volume, fields)
    moves.check(array, volume, fields)
    if any(field.startswith("restore_to.") for field in fields):
        find_restore_snapshot(array, volume, fields)


def _check_name_free(array: Array, volume: Volume, name: str) -> None:
    taken = array.store.count(Volume, svm_uuid=volume.svm_uuid, name=name)
    if taken and name != volume.name:
        svm = names.svm_name(array, volume)
        raise OntapError("917526", target="name", name=name, svm=svm)


def _check_split(array: Array, volume: Volume, *, wanted: bool) -> None:
    """Refuse to split a volume that is no clone, or is mirrored.

    NetApp documents no code for the latter.

    Source: "Split a FlexClone volume from its parent volume": not in a data protection
    relationship.
    """
    if volume.parent_uuid is None:
        raise OntapError("918235", target="clone.split_initiated", name=volume.name)
    mirrored = array.store.count(Destination, source_uuid=volume.uuid)
    mirrored += array.store.count(Relationship, destination_uuid=volume.uuid)
    if wanted and mirrored:
        raise OntapError(
            "917536",
            reason=f'Volume "{volume.name}" is in a data protection relationship and '
            "cannot be split.",
        )


def _names_snapshot_policy(fields: Fields) -> bool:
    return "snapshot_policy.name" in fields or "snapshot_policy.uuid" in fields


def _check_combination(fields: Fields) -> None:
    """Refuse what cannot be combined with a restore or a split."""
    is_restore = any(field.startswith("restore_to.") for field in fields)
    is_split = fields.get("clone.split_initiated") is True
    for field in fields:
        if is_restore and not field.startswith("restore_to."):
            raise OntapError("918251", target=field, field=field)
        if is_split and field not in _WITH_SPLIT:
            raise OntapError("918248", target=field, field=field)


def find_restore_snapshot(array: Array, volume: Volume, fields: Fields) -> Snapshot:
    """Return the snapshot that a restore names. Raises: OntapError 1638600."""
    name = fields.get("restore_to.snapshot.name")
    key = fields.get("restore_to.snapshot.uuid")
    for row in array.store.select(Snapshot, volume_uuid=volume.uuid, phase=LIVE):
        if name in (None, row.name) and key in (None, row.uuid):
            return row
    raise OntapError("1638600", target="restore_to.snapshot.name")


# --- the verb


def apply(array: Array, arguments: Fields) -> None:
    """Apply the changes, in an order that works."""
    volume_uuid: str = arguments["volume_uuid"]
    changes: Fields = arguments["changes"]
    with array.busy(volume_uuid):
        volume = array.store.find(Volume, volume_uuid)
        if volume is None or volume.phase != LIVE:
            raise OntapError("4", target="uuid")
        _apply_state(array, volume, changes)
        _apply_properties(array, volume_uuid, changes)
        _apply_root_owner(array, volume_uuid, changes)
        if any(field.startswith("restore_to.") for field in changes):
            _restore(array, volume_uuid, changes)
        if any(field.startswith("efficiency.") for field in changes):
            efficiency.apply(array, volume_uuid, changes)
        if "clone.split_initiated" in changes:
            act = splits.begin if changes["clone.split_initiated"] else splits.end
            act(array, volume_uuid)
        if any(field.startswith("movement.") for field in changes):
            moves.apply(array, volume_uuid, changes)
        if "nas.path" in changes:
            path = changes["nas.path"]
            if path:
                junctions.mount(array, volume_uuid, path=path)
            else:
                junctions.unmount(array, volume_uuid)


def _apply_state(array: Array, volume: Volume, changes: Fields) -> None:
    state = changes.get("state", volume.state)
    if state == volume.state:
        return
    if state != "online":
        junctions.unmount(array, volume.uuid)
    _save(array, volume.uuid, state=state)
    if state == "online":
        splits.resume(array, volume.uuid)


def _apply_properties(array: Array, volume_uuid: str, changes: Fields) -> None:
    columns = {
        "name": "name",
        "comment": "comment",
        "size": "size_bytes",
        "guarantee.type": "guarantee",
        "space.snapshot.reserve_percent": "snapshot_reserve_percent",
        "nas.security_style": "security_style",
        "nas.uid": "uid",
        "nas.gid": "gid",
        "nas.unix_permissions": "unix_permissions",
    }
    values = {columns[k]: v for k, v in changes.items() if k in columns}
    if "nas.export_policy.name" in changes or "nas.export_policy.id" in changes:
        volume = array.store.get(Volume, volume_uuid)
        policy = names.find_export_policy(array, changes, svm_uuid=volume.svm_uuid)
        values["export_policy_id"] = policy.id
    if _names_snapshot_policy(changes):
        volume = array.store.get(Volume, volume_uuid)
        values["snapshot_policy"] = snapshot_policies.chosen(
            array, changes, svm_uuid=volume.svm_uuid
        )
    if remembered := remembered_in(changes):
        volume = array.store.get(Volume, volume_uuid)
        values["remembered"] = {**volume.remembered, **remembered}
    if values:
        _save(array, volume_uuid, **values)
        array.sizes.follow(volume_uuid)
    if snapshot_directories.ACCESS in changes:
        snapshot_directories.refresh(array, volume_uuid)


def _apply_root_owner(array: Array, volume_uuid: str, changes: Fields) -> None:
    """Set owner and mode of the root directory only."""
    volume = array.store.get(Volume, volume_uuid)
    path = array.volume_path(volume)
    if ("nas.uid" in changes or "nas.gid" in changes) and os.geteuid() == 0:
        os.chown(path, changes.get("nas.uid", -1), changes.get("nas.gid", -1))
        status = path.stat()
        _save(array, volume_uuid, uid=status.st_uid, gid=status.st_gid)
    if "nas.unix_permissions" in changes:
        # Its owner stays whoever it is by now: hosts may have given it away.
        path.chmod(int(str(changes["nas.unix_permissions"]), 8))


def _restore(array: Array, volume_uuid: str, changes: Fields) -> None:
    volume = array.store.get(Volume, volume_uuid)
    snapshot = find_restore_snapshot(array, volume, changes)
    put_image(array, volume, snapshot)


def put_image(array: Array, volume: Volume, snapshot: Snapshot) -> None:
    """Replace the volume's files by those of the snapshot.

    The complete copy waits under a name of its own, so that a crash loses nothing.

    Raises: OntapError 524511 while other volumes are mounted inside it.
    """
    if junctions.has_nested(array, volume):
        raise OntapError(
            "524511", snapshot=snapshot.name, reason="volumes are mounted inside it"
        )
    path = array.volume_path(volume)
    half, ready = (
        path.with_name(path.name + ".half"),
        path.with_name(path.name + ".new"),
    )
    if not ready.exists():
        array.plane.remove(half)
        array.plane.copy(array.snapshot_path(snapshot), target=half, read_only=False)
        half.rename(ready)
    if volume.junction_path is not None:
        array.namespace.part(array.place_of(volume))
    array.trash.put(path)
    ready.rename(path)
    array.sizes.forget(volume.uuid)
    if volume.junction_path is not None:
        array.namespace.join(path, at=array.place_of(volume))
        snapshot_directories.refresh(array, volume.uuid)


def _save(array: Array, volume_uuid: str, **values: Any) -> None:
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        if "name" in values:  # another job may have taken it meanwhile
            _check_name_free(array, volume, values["name"])
        array.store.save(replace(volume, **values))
