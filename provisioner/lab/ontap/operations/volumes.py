"""Create and delete volumes.

Checks run in the transaction that stores the row, so two requests for one name cannot
both pass. A row is ``making``, and hidden, until its files are complete.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.dataplane.trees import own_tree
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import now_text
from provisioner.lab.ontap.operations import (
    efficiency,
    junctions,
    limits,
    names,
    qos_policies,
    snapshot_policies,
    snapshots,
)
from provisioner.lab.ontap.records import (
    DELETING,
    LIVE,
    MAKING,
    QUEUED,
    Destination,
    ExportPolicy,
    Job,
    QuotaRule,
    Relationship,
    Snapshot,
    Svm,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

MINIMUM_BYTES = 20 << 20

# What a FlexClone can be created with; everything else is set by a PATCH afterwards.
CLONE_FIELDS = ("name", "svm", "comment", "type", "clone", "qos", "style", "_tags")
CLONE_NAS_FIELDS = ("nas.path", "nas.uid", "nas.gid")

AUTODELETE = "space.snapshot.autodelete"


# Documented settings that change nothing in the lab but are given back.
_REMEMBERED = (
    "access_time_enabled",
    "snapshot_directory_access_enabled",
    "analytics",
    "autosize",
    "encryption",
    "files",
    "language",
    "qos",
    "quota",
    "snaplock",
    "_tags",
    "tiering",
)


def create(array: Array, fields: Fields) -> tuple[Volume, Job]:
    """Check a request for a volume or a FlexClone and store it with its job.

    Raises: OntapError with the code of the first rule that it breaks.
    """
    is_clone = any(name.startswith("clone.") for name in fields)
    with array.store.transaction():
        volume = plan(array, fields)
        job = array.jobs.create(
            "volume_clone" if is_clone else "volume_make",
            description=f"POST /api/storage/volumes/?name={volume.name}",
            svm_uuid=volume.svm_uuid,
            arguments={
                "volume_uuid": volume.uuid,
                "state": fields.get("state", "online"),
                "reown": "nas.uid" in fields or "nas.gid" in fields,
            },
        )
    return volume, job


def plan(array: Array, fields: Fields) -> Volume:
    """Check a request and store the row of a new volume or FlexClone.

    Raises: OntapError with the code of the first rule that it breaks.
    """
    is_clone = any(name.startswith("clone.") for name in fields)
    with array.store.transaction():
        svm = names.find_svm(array, fields)
        name = fields.get("name")
        if name is None:
            raise OntapError("262194", target="name", field="name")
        names.check_volume_name(name)
        _check_name_free(array, name, svm=svm)
        count = array.store.count(Volume, svm_uuid=svm.uuid)
        if count >= array.settings.max_volumes_per_svm:
            raise OntapError(
                "917536", reason=f"The limit of volumes of SVM {svm.name} is reached."
            )
        row_of = _plan_clone if is_clone else _plan_volume
        volume = row_of(array, fields, svm=svm)
        if path := fields.get("nas.path"):
            junctions.check_junction_path(path)
            junctions.check_junction_free(array, path, svm_uuid=svm.uuid)
            volume = replace(volume, junction_path=path)
        array.store.save(volume)
    return volume


def _check_name_free(array: Array, name: str, *, svm: Svm) -> None:
    for row in array.store.select(Volume, svm_uuid=svm.uuid, name=name):
        if row.phase == MAKING:
            raise OntapError("13107405", target="name", name=name, svm=svm.name)
        if row.phase != QUEUED:
            raise OntapError("917526", target="name", name=name, svm=svm.name)


def _plan_volume(array: Array, fields: Fields, *, svm: Svm) -> Volume:
    aggregate = names.find_aggregate(array, fields)
    check_policies(array, fields)
    size = fields.get("size", fields.get("space.size", MINIMUM_BYTES))
    check_size(array, size)
    reserve = fields.get("space.snapshot.reserve_percent", 5)
    if not 0 <= reserve <= 90:
        raise OntapError("917835", target="space.snapshot.reserve_percent")
    guarantee = fields.get("guarantee.type", "volume")
    check_room(array, size if guarantee == "volume" else 0, aggregate=aggregate)
    policy = names.find_export_policy(array, fields, svm_uuid=svm.uuid)
    volume = Volume(
        str(uuid.uuid4()),
        svm_uuid=svm.uuid,
        name=fields["name"],
        size_bytes=size,
        create_time=now_text(),
        export_policy_id=policy.id,
        msid=array.store.next_number("msid", start=1),
        comment=fields.get("comment", ""),
        type=fields.get("type", "rw"),
        security_style=fields.get("nas.security_style", "unix"),
        uid=fields.get("nas.uid", 0),
        gid=fields.get("nas.gid", 0),
        unix_permissions=fields.get("nas.unix_permissions", 755),
        guarantee=guarantee,
        aggregate=aggregate,
        snapshot_policy=snapshot_policies.chosen(array, fields, svm_uuid=svm.uuid),
        snapshot_reserve_percent=reserve,
        remembered=remembered_in(fields),
    )
    efficiency.check(array, volume, fields)
    limits.check(array, volume, fields)
    return replace(volume, efficiency=efficiency.settings_of(volume, fields))


def _plan_clone(array: Array, fields: Fields, *, svm: Svm) -> Volume:
    for name in fields:
        _check_clone_field(array, name)
    check_policies(array, fields)
    if not fields.get("clone.is_flexclone", True):
        raise OntapError(
            "262197", target="clone.is_flexclone", field="clone", value="false"
        )
    parent = _find_parent(array, fields, svm=svm)
    if fields.get("type", parent.type) not in ("rw", parent.type):
        raise OntapError("918244", target="type")
    if 0 in (fields.get("nas.uid"), fields.get("nas.gid")):
        raise OntapError("13565983", target="nas.uid")
    if parent.svm_uuid != svm.uuid and fields.get("nas.path"):
        raise OntapError("1520442", target="nas.path")
    snapshot = _find_parent_snapshot(array, fields, parent=parent, name=fields["name"])
    clones = array.store.count(Volume, parent_uuid=parent.uuid)
    if clones >= array.settings.max_clones_per_volume:
        raise OntapError(
            "917536", reason=f"The limit of clones of volume {parent.name} is reached."
        )
    check_room(array, 0, aggregate=parent.aggregate)
    policy_id = parent.export_policy_id
    if parent.svm_uuid != svm.uuid:
        policy_id = names.find_export_policy(array, {}, svm_uuid=svm.uuid).id
    return replace(
        parent,
        uuid=str(uuid.uuid4()),
        svm_uuid=svm.uuid,
        name=fields["name"],
        phase=MAKING,
        state="online",
        type="rw",
        comment=fields.get("comment", ""),
        create_time=now_text(),
        export_policy_id=policy_id,
        msid=array.store.next_number("msid", start=1),
        junction_path=None,
        junction_parent_uuid=None,
        is_svm_root=False,
        uid=fields.get("nas.uid", parent.uid),
        gid=fields.get("nas.gid", parent.gid),
        efficiency=efficiency.inherited(parent),
        parent_uuid=parent.uuid,
        parent_snapshot_uuid=snapshot.uuid,
        inherited_bytes=snapshot.logical_bytes,
        inherited_files=snapshot.files,
        inherited_savings_bytes=snapshot.saved_bytes,
        said_own_bytes=0,
        retention_seconds=None,
        is_splitting=False,
        split_percent=0,
        movement={},
        deleted_at=None,
        remembered={**limits.inherited(parent), **remembered_in(fields)},
    )


def _check_clone_field(array: Array, name: str) -> None:
    family = name.partition(".")[0]
    if family == "guarantee" and array.settings.clone_guarantee:
        return
    if family not in CLONE_FIELDS and name not in CLONE_NAS_FIELDS:
        raise OntapError("918247", target=name, field=name)


def _find_parent(array: Array, fields: Fields, *, svm: Svm) -> Volume:
    name = fields.get("clone.parent_volume.name")
    key = fields.get("clone.parent_volume.uuid")
    if name is None and key is None:
        raise OntapError(
            "262194", target="clone.parent_volume", field="clone.parent_volume"
        )
    home = svm
    if "clone.parent_svm.name" in fields or "clone.parent_svm.uuid" in fields:
        home = names.find_svm(array, fields, prefix="clone.parent_svm")
    rows = array.store.select(Volume, svm_uuid=home.uuid, phase=LIVE, name=name)
    if name is None:
        found = array.store.find(Volume, key)
        is_there = found and found.svm_uuid == home.uuid and found.phase == LIVE
        rows = [found] if found and is_there else []
    if not rows:
        raise OntapError("524601", target="clone.parent_volume.name", name=name or key)
    parent = rows[0]
    if key is not None and parent.uuid != key:
        raise OntapError("918236", target="clone.parent_volume.uuid")
    if parent.state != "online":
        raise OntapError("917775", svm=home.name, name=parent.name)
    return parent


def _find_parent_snapshot(
    array: Array, fields: Fields, *, parent: Volume, name: str
) -> Snapshot:
    wanted = fields.get("clone.parent_snapshot.name")
    key = fields.get("clone.parent_snapshot.uuid")
    if wanted is None and key is None:
        if parent.type == "dp":
            raise OntapError("1638400", target="clone.parent_snapshot", snapshot="")
        return snapshots.plan(array, parent, name=_base_name(array, parent, name))
    for row in array.store.select(Snapshot, volume_uuid=parent.uuid, phase=LIVE):
        if row.name == wanted or (wanted is None and row.uuid == key):
            if key is not None and row.uuid != key:
                raise OntapError("918243", target="clone.parent_snapshot.uuid")
            return row
    raise OntapError(
        "1638400", target="clone.parent_snapshot.name", snapshot=wanted or key
    )


def _base_name(array: Array, parent: Volume, clone_name: str) -> str:
    stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H%M%S")
    stem = f"clone_{clone_name[:16]}.{stamp}."
    taken = {row.name for row in array.store.select(Snapshot, volume_uuid=parent.uuid)}
    number = 0
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"


def check_size(array: Array, size: int) -> None:
    """Refuse an invalid size. Raises: OntapError 917534, 917537."""
    if size < MINIMUM_BYTES:
        raise OntapError("917534", target="size", size=size)
    if size > array.settings.max_volume_bytes:
        raise OntapError("917537", target="size", size=size)


def check_room(array: Array, needed_bytes: int, *, aggregate: str) -> None:
    """Refuse if an aggregate lacks the space, "" for the first one.

    A volume takes space only of the aggregate that it is, or will be, in.

    Source: `aggregates` of `/storage/volumes` in the ONTAP REST reference.

    Raises: OntapError 917536.
    """
    if needed_bytes == 0 and not array.settings.aggregate_is_full:
        return
    _size, available = array.aggregate_bytes(aggregate)
    if available < max(needed_bytes, 1):
        raise OntapError(
            "917536",
            reason="There is not enough space in aggregate "
            f"{aggregate or array.config.aggregate}: "
            f"{needed_bytes} bytes are needed, {available} are available.",
        )


def remembered_in(fields: Fields) -> dict[str, object]:
    """Return the documented settings of a body that the lab only stores."""
    kept = {
        name.replace(f"{AUTODELETE}_", f"{AUTODELETE}."): value
        for name, value in fields.items()
        if name.partition(".")[0] in _REMEMBERED
        or name.startswith(AUTODELETE)
        or name == limits.FRACTIONAL_RESERVE
    }
    return kept | qos_policies.replaced_by(kept)


def check_policies(array: Array, fields: Fields) -> None:
    """Refuse QoS and tiering policies that the cluster does not have.

    Raises: OntapError 2 as NetApp documents no code for the first, 918183.
    """
    qos_policies.check(array, fields)
    # Data is tiered only from FabricPool aggregates.
    if fields.get("tiering.policy", "none") != "none":
        raise OntapError("918183", target="tiering.policy")


# --- verbs


def make(array: Array, arguments: Fields) -> None:
    """Create the empty tree of a new volume, and show it."""
    volume = array.store.find(Volume, arguments["volume_uuid"])
    if volume is None or volume.phase != MAKING:
        return
    path = array.volume_path(volume)
    array.plane.remove(path)
    array.plane.create(path)
    own_root(path, volume)
    _appear(array, volume, state=arguments["state"])


def make_clone(array: Array, arguments: Fields) -> None:
    """Create the tree of a FlexClone from its parent's snapshot, and show it.

    Source: POST /storage/volumes; uid and gid of a clone re-own the whole tree.
    """
    volume = array.store.find(Volume, arguments["volume_uuid"])
    if volume is None or volume.phase != MAKING:
        return
    path = array.volume_path(volume)
    snapshot = array.store.get(Snapshot, volume.parent_snapshot_uuid)
    snapshots.make(array, {"snapshot_uuid": snapshot.uuid})
    array.plane.remove(path)
    array.plane.copy(array.snapshot_path(snapshot), target=path, read_only=False)
    if arguments["reown"] and array.settings.clone_reown and os.geteuid() == 0:
        own_tree(path, uid=volume.uid, gid=volume.gid)
    _appear(array, volume, state="online")


def abandon(array: Array, arguments: Fields) -> None:
    """Drop a half-made volume, and the base snapshot made for it."""
    volume = array.store.find(Volume, arguments["volume_uuid"])
    if volume is None or volume.phase != MAKING:
        return
    array.plane.remove(array.volume_path(volume))
    array.store.remove(volume)
    if volume.parent_snapshot_uuid is not None:
        snapshots.abandon(array, {"snapshot_uuid": volume.parent_snapshot_uuid})


def _appear(array: Array, volume: Volume, *, state: str) -> None:
    """Mount the finished volume if requested, and show it."""
    array.sizes.begin(replace(volume, state=state))
    path = volume.junction_path
    live = replace(volume, phase=LIVE, state=state, junction_path=None)
    if path is None or state != "online":
        array.store.save(live)
        return
    try:
        junctions.mount(array, volume.uuid, path=path)
    except OntapError:
        array.store.save(live)
        raise
    mounted = array.store.get(Volume, volume.uuid)
    array.store.save(replace(mounted, phase=LIVE, state=state))


def own_root(path: Path, volume: Volume) -> None:
    """Set owner and mode of a volume's root directory."""
    if os.geteuid() == 0:
        os.chown(path, volume.uid, volume.gid)
    path.chmod(int(str(volume.unix_permissions), 8))


def delete(array: Array, volume: Volume, *, force: bool) -> Job:
    """Store the job that deletes the volume; its rules are checked in the job."""
    with array.store.transaction():
        return array.jobs.create(
            "volume_delete",
            description=f"DELETE /api/storage/volumes/{volume.uuid}",
            svm_uuid=volume.svm_uuid,
            arguments={"volume_uuid": volume.uuid, "force": force},
        )


def check_deletable(array: Array, volume: Volume) -> None:
    """Refuse to delete what others need. Raises: OntapError 917531, 524615, 917536."""
    svm = names.svm_name(array, volume)
    if volume.is_svm_root:
        raise OntapError("917531", name=volume.name, svm=svm)
    if array.store.count(Volume, parent_uuid=volume.uuid):
        raise OntapError("524615", name=volume.name, svm=svm)
    kept = "You must delete the SnapMirror relationships before deleting the volume."
    if array.store.count(Destination, source_uuid=volume.uuid):
        raise OntapError(
            "917536",
            reason=f'Volume "{volume.name}" in SVM "{svm}" is the source endpoint of '
            f"one or more SnapMirror relationships. {kept}",
        )
    if array.store.count(Relationship, destination_uuid=volume.uuid):
        raise OntapError(
            "917536",
            reason=f'Volume "{volume.name}" in SVM "{svm}" is the destination endpoint '
            f"of a SnapMirror relationship. {kept}",
        )


def destroy(array: Array, arguments: Fields) -> None:
    """Unmount the volume and remove it, its snapshots and its files.

    Without ``force`` and with a recovery queue it is only renamed and hidden.
    """
    volume_uuid: str = arguments["volume_uuid"]
    with array.busy(volume_uuid):
        volume = array.store.find(Volume, volume_uuid)
        if volume is None:
            return
        if volume.phase == LIVE:
            check_deletable(array, volume)
            junctions.unmount(array, volume_uuid)
        phase = DELETING
        if array.settings.recovery_queue_seconds > 0 and not arguments["force"]:
            phase = QUEUED
        with array.store.transaction():
            volume = array.store.get(Volume, volume_uuid)
            if volume.phase == LIVE:
                check_deletable(array, volume)
                volume = _hidden(volume, phase=phase)
                array.store.save(volume)
        if volume.phase == DELETING:
            remove_files(array, volume)


def _hidden(volume: Volume, *, phase: str) -> Volume:
    return replace(
        volume,
        phase=phase,
        name=f"{volume.name}_{volume.msid % 100_000}",
        state="offline",
        deleted_at=datetime.now(UTC).timestamp(),
    )


def remove_files(array: Array, volume: Volume) -> None:
    """Remove the trees of a hidden volume, then its rows."""
    for snapshot in array.store.select(Snapshot, volume_uuid=volume.uuid):
        array.trash.put(array.snapshot_path(snapshot))
        array.store.remove(snapshot)
    for rule in array.store.select(QuotaRule, volume_uuid=volume.uuid):
        array.store.remove(rule)
    array.trash.put(array.volume_path(volume))
    array.usage.forget(volume.uuid)
    array.sizes.forget(volume.uuid)
    array.store.remove(volume)


def policy_of(array: Array, volume: Volume) -> ExportPolicy:
    """Return the export policy of the volume."""
    return array.store.get(ExportPolicy, volume.export_policy_id)
