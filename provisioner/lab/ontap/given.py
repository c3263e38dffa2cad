"""Volumes from a file, which the lab creates at its first start.

Their trees are empty, and as old as the volumes. Their usage is only reported, so an
array can be fuller than any disk of this machine. The file is a JSON object with
`aggregate_bytes` and `volumes` by the name of each SVM. A volume has fields of its
record, its `export_policy` by name, and its `snapshots`; `said_bytes`, `said_own_bytes`
and `said_files` are added to what is measured. An SVM may have `relationships` that
fill its volumes from the peer.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.operations.volumes import own_root
from provisioner.lab.ontap.records import (
    LIVE,
    Destination,
    ExportPolicy,
    Relationship,
    SnapmirrorPolicy,
    Snapshot,
    Svm,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

AGGREGATE_BYTES = "said_aggregate_bytes"
_TAKEN, _RELATED = "has_taken_volumes", "has_taken_relationships"


def take(array: Array, path: Path) -> None:
    """Create the volumes of the file in the array's SVMs, at the first start only."""
    if array.store.setting(_TAKEN):
        return
    named: dict[str, dict[str, Any]] = json.loads(path.read_text())
    with array.store.transaction():
        for svm in array.store.select(Svm):
            if svm.name in named:
                _take(array, svm, named[svm.name])
        array.store.remember(_TAKEN, True)


def relate(array: Array, path: Path) -> None:
    """Create the relationships of the file from the peer, at the first start only."""
    if array.peer is None or array.store.setting(_RELATED):
        return
    named: dict[str, dict[str, Any]] = json.loads(path.read_text())
    with array.store.transaction(), array.peer.store.transaction():
        for svm in array.store.select(Svm):
            for fields in named.get(svm.name, {}).get("relationships", ()):
                _relate(array, array.peer, svm, fields)
        array.store.remember(_RELATED, True)


def _relate(array: Array, source: Array, svm: Svm, fields: dict[str, Any]) -> None:
    [source_svm] = source.store.select(Svm, name=fields["source_svm"])
    [original] = source.store.select(Volume, name=fields["source_volume"])
    [volume] = array.store.select(Volume, name=fields["destination_volume"])
    originals = {
        each.name: each
        for each in source.store.select(Snapshot, volume_uuid=original.uuid)
    }
    there = array.store.select(Snapshot, volume_uuid=volume.uuid)
    for snapshot in there:
        version = originals[snapshot.name].version_uuid
        array.store.save(replace(snapshot, version_uuid=version))
    newest = max(there, key=lambda each: each.create_time)
    ends: dict[str, Any] = {
        "uuid": fields["uuid"],
        "source_path": f"{source_svm.name}:{original.name}",
        "source_uuid": original.uuid,
        "source_svm_uuid": source_svm.uuid,
        "destination_path": f"{svm.name}:{volume.name}",
        "destination_svm_uuid": svm.uuid,
    }
    array.store.save(
        Relationship(
            **ends,
            source_cluster=source.config.cluster,
            destination_uuid=volume.uuid,
            policy_uuid=_mirror_policy(array, svm, fields).uuid,
            state="snapmirrored",
            exported_snapshot=newest.name,
            exported_time=newest.create_time,
        )
    )
    source.store.save(
        Destination(
            **ends,
            destination_cluster=array.config.cluster,
            policy_name=fields["policy"],
            policy_type="async",
            base_snapshot_uuid=originals[newest.name].uuid,
        )
    )


def _mirror_policy(array: Array, svm: Svm, fields: dict[str, Any]) -> SnapmirrorPolicy:
    for row in array.store.select(SnapmirrorPolicy, name=fields["policy"]):
        return row
    policy = SnapmirrorPolicy(
        str(uuid.uuid4()),
        name=fields["policy"],
        svm_uuid=svm.uuid,
        create_snapshot_on_source=False,
        retention=[{"label": fields["label"], "count": str(fields["keep"])}],
    )
    array.store.save(policy)
    return policy


def _take(array: Array, svm: Svm, named: dict[str, Any]) -> None:
    array.store.remember(AGGREGATE_BYTES, named["aggregate_bytes"])
    policies: dict[str, int] = {}
    for row in array.store.select(ExportPolicy, svm_uuid=svm.uuid):
        policies[row.name] = row.id
    for fields in named["volumes"]:
        name = fields.pop("export_policy")
        if name not in policies:
            policies[name] = _make_policy(array, svm, name)
        _make(array, svm, fields, policy_id=policies[name])


def _make_policy(array: Array, svm: Svm, name: str) -> int:
    number = array.store.next_number("export_policy", start=1)
    array.store.save(ExportPolicy(number, svm_uuid=svm.uuid, name=name))
    return number


def _make(array: Array, svm: Svm, fields: dict[str, Any], *, policy_id: int) -> None:
    snapshots = fields.pop("snapshots", [])
    is_mounted = fields.get("junction_path") is not None
    volume = Volume(
        **fields,
        svm_uuid=svm.uuid,
        export_policy_id=policy_id,
        msid=array.store.next_number("msid", start=1),
        phase=LIVE,
        guarantee="none",
        junction_parent_uuid=svm.root_volume_uuid if is_mounted else None,
    )
    path = array.volume_path(volume)
    array.plane.create(path)
    own_root(path, volume)
    created = dt.datetime.fromisoformat(volume.create_time).timestamp()
    os.utime(path, (created, created))
    array.store.save(volume)
    for said in snapshots:
        snapshot = Snapshot(
            **said, volume_uuid=volume.uuid, version_uuid=str(uuid.uuid4()), phase=LIVE
        )
        array.plane.create(array.snapshot_path(snapshot))
        array.store.save(snapshot)
