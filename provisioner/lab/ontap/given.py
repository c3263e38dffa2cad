"""Volumes from a file, which the lab creates at its first start.

Their trees are empty and their usage is only reported, so an array can be fuller than
any disk of this machine. The file is a JSON object with `aggregate_bytes` and `volumes`
by the name of each SVM. A volume has fields of its record, its `export_policy` by name,
and its `snapshots`; `said_bytes`, `said_own_bytes` and `said_files` are added to what
is measured.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.operations.volumes import own_root
from provisioner.lab.ontap.records import LIVE, ExportPolicy, Snapshot, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

AGGREGATE_BYTES = "said_aggregate_bytes"
_TAKEN = "has_taken_volumes"


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
    array.store.save(volume)
    for said in snapshots:
        snapshot = Snapshot(
            **said, volume_uuid=volume.uuid, version_uuid=str(uuid.uuid4()), phase=LIVE
        )
        array.plane.create(array.snapshot_path(snapshot))
        array.store.save(snapshot)
