"""SnapMirror policies: the built-in ones, and creating and changing others.

Source: ``/snapmirror/policies`` of the ONTAP REST reference.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.records import Relationship, SnapmirrorPolicy

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

DEFAULT = "Asynchronous"
SCHEDULES = ("5min", "10min", "hourly", "8hour", "daily", "weekly", "monthly")


def _kept(**counts: int) -> list[dict[str, object]]:
    return [{"label": label, "count": str(count)} for label, count in counts.items()]


_LATEST: dict[str, Any] = {"retention": _kept(sm_created=1)}
_ALL: dict[str, Any] = {
    "copy_all_source_snapshots": True,
    "retention": _kept(sm_created=1, all_source_snapshots=1),
}
_UNIFIED: dict[str, Any] = {"retention": _kept(sm_created=1, daily=7, weekly=52)}
_SYNC: dict[str, Any] = {"type": "sync", "retention": _kept(sm_created=1)}
_VAULT: dict[str, Any] = {
    "create_snapshot_on_source": False,
    "retention": _kept(daily=7, weekly=52),
}
_BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    "Asynchronous": _UNIFIED,
    "AutomatedFailOver": _SYNC,
    "AutomatedFailOverDuplex": _SYNC,
    "CloudBackupDefault": {
        "create_snapshot_on_source": False,
        "retention": _kept(daily=7),
    },
    "Continuous": {"type": "continuous", "create_snapshot_on_source": False},
    "DPDefault": _ALL,
    "DailyBackup": {"create_snapshot_on_source": False, "retention": _kept(daily=7)},
    "MirrorAllSnapshots": _ALL,
    "MirrorAndVault": _UNIFIED,
    "MirrorLatest": _LATEST,
    "StrictSync": _SYNC,
    "Sync": _SYNC,
    "Unified7year": {
        "retention": _kept(sm_created=1, daily=7, weekly=52, monthly=84),
    },
    "XDPDefault": _VAULT,
}


def seed(array: Array) -> None:
    """Store the built-in policies that are missing."""
    with array.store.transaction():
        for name, values in _BUILT_IN.items():
            if not array.store.select(SnapmirrorPolicy, name=name):
                array.store.save(
                    SnapmirrorPolicy(str(uuid.uuid4()), name=name, **values)
                )


def find(array: Array, *, name: str | None, key: str | None) -> SnapmirrorPolicy:
    """Return the policy with the name or uuid. Raises: OntapError 13303819."""
    for row in array.store.select(SnapmirrorPolicy, name=name):
        if key in (None, row.uuid):
            return row
    raise OntapError("13303819", target="policy", policy=name or key)


def check_schedule(name: str | None) -> str | None:
    """Return the schedule's name; empty means none. Raises: OntapError 6619699."""
    if name and name not in SCHEDULES:
        raise OntapError("6619699", target="transfer_schedule.name", schedule=name)
    return name or None


def create(array: Array, fields: Fields) -> SnapmirrorPolicy:
    """Store a new policy. Raises: OntapError 262194, 6621060, 6619699, 2621462."""
    name = fields.get("name")
    if not name:
        raise OntapError("262194", target="name", field="name")
    svm_uuid = array.store.svm_uuid
    if "svm.name" in fields or "svm.uuid" in fields:
        svm_uuid = names.find_svm(array, fields).uuid
    with array.store.transaction():
        if array.store.count(SnapmirrorPolicy, name=name):
            raise OntapError("6621060", target="name", policy=name)
        policy = SnapmirrorPolicy(
            str(uuid.uuid4()), name=name, svm_uuid=svm_uuid, **_values(fields)
        )
        array.store.save(policy)
    return policy


def change(array: Array, policy: SnapmirrorPolicy, fields: Fields) -> None:
    """Change a policy. Raises: OntapError 6621060, 6619699."""
    values = _values(fields)
    name = fields.get("name", policy.name)
    with array.store.transaction():
        if name != policy.name and array.store.count(SnapmirrorPolicy, name=name):
            raise OntapError("6621060", target="name", policy=name)
        array.store.save(replace(policy, name=name, **values))


def delete(array: Array, policy: SnapmirrorPolicy) -> None:
    """Delete a policy. Raises: OntapError 8 if it is built in or in use."""
    with array.store.transaction():
        used = any(
            row.policy_uuid == policy.uuid for row in array.store.select(Relationship)
        )
        if used or policy.name in _BUILT_IN:
            raise OntapError("8", target="uuid")
        array.store.remove(policy)


def _values(fields: Fields) -> dict[str, Any]:
    columns = (
        "type",
        "comment",
        "create_snapshot_on_source",
        "copy_all_source_snapshots",
        "copy_latest_source_snapshot",
        "throttle",
        "identity_preservation",
    )
    values = {name: fields[name] for name in columns if name in fields}
    if "retention" in fields:
        values["retention"] = [
            {**rule, "count": str(rule.get("count", 1))} for rule in fields["retention"]
        ]
    if "transfer_schedule.name" in fields:
        values["transfer_schedule"] = check_schedule(fields["transfer_schedule.name"])
    return values
