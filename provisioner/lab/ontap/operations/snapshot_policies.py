"""Snapshot policies and their schedules; schedules.py takes their snapshots.

Source: ``/storage/snapshot-policies`` and its ``/schedules`` in the ONTAP REST
reference, error tables included; ``volume snapshot policy create`` (one to five
schedules). A policy of the cluster applies to every SVM.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.operations.snapmirror_policies import SCHEDULES
from provisioner.lab.ontap.records import SnapshotPolicy, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]
Copy = dict[str, object]

MAXIMUM_COPIES = 1_023
MAXIMUM_SCHEDULES = 5
_PERIOD = re.compile(
    r"P(?=\d|T)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?"
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}")


def _copies(**counts: int) -> list[Copy]:
    return [
        {"schedule": schedule, "count": count, "prefix": schedule}
        for schedule, count in counts.items()
    ]


_BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    "default": {
        "comment": "Default policy with hourly, daily & weekly schedules.",
        "copies": _copies(hourly=6, daily=2, weekly=2),
    },
    "default-1weekly": {
        "comment": "Default policy with 6 hourly, 2 daily & 1 weekly schedule.",
        "copies": _copies(hourly=6, daily=2, weekly=1),
    },
    "none": {"comment": "Policy with no schedules.", "enabled": False},
}


def seed(array: Array) -> None:
    """Store the built-in policies that are missing."""
    with array.store.transaction():
        for name, values in _BUILT_IN.items():
            if not array.store.select(SnapshotPolicy, name=name):
                key = array.identity(f"snapshot_policy.{name}")
                array.store.save(SnapshotPolicy(key, name=name, **values))


def find(array: Array, *, name: str, svm_uuid: str) -> SnapshotPolicy | None:
    """Return the policy with this name for the SVM: its own, or the cluster's."""
    for row in array.store.select(SnapshotPolicy, name=name):
        if row.svm_uuid in (None, svm_uuid):
            return row
    return None


def chosen(array: Array, fields: Fields, *, svm_uuid: str) -> str:
    """Return the name of the policy in a volume's body, or the default.

    Raises: OntapError 917551 if the SVM has no such policy.
    """
    key = fields.get("snapshot_policy.uuid")
    if key is None:
        name = fields.get("snapshot_policy.name", "default")
        policy = find(array, name=name, svm_uuid=svm_uuid)
    else:
        policy = array.store.find(SnapshotPolicy, key)
        name = fields.get("snapshot_policy.name", policy and policy.name)
    if policy is None or policy.name != name or policy.svm_uuid not in (None, svm_uuid):
        raise OntapError("917551", target="snapshot_policy.name", policy=name or key)
    return policy.name


def create(array: Array, fields: Fields) -> SnapshotPolicy:
    """Store a new policy, of the named SVM or of the cluster.

    Raises: OntapError 1638407, 1638408, 1638411, 1638413, 1638417, 1638451, 1638508,
    1638527, 918253.
    """
    if "name" not in fields:
        raise OntapError("262194", target="name", field="name")
    name = fields["name"]
    if not _NAME.fullmatch(name):
        raise OntapError("1638417", target="name", policy=name)
    svm_uuid = array.store.svm_uuid
    if "svm.name" in fields or "svm.uuid" in fields:
        svm_uuid = names.find_svm(array, fields).uuid
    with array.store.transaction():
        for row in array.store.select(SnapshotPolicy, name=name):
            if svm_uuid is None or row.svm_uuid in (None, svm_uuid):
                raise OntapError("1638527", target="name", policy=name)
        policy = SnapshotPolicy(
            str(uuid.uuid4()),
            name=name,
            svm_uuid=svm_uuid,
            comment=fields.get("comment", ""),
            enabled=fields.get("enabled", True),
        )
        for entry in fields.get("copies", []):
            policy = _with_schedule(array, policy, entry)
        if not policy.copies:
            raise OntapError("1638411", target="copies")
        array.store.save(policy)
    return policy


def change(array: Array, policy: SnapshotPolicy, fields: Fields) -> None:
    """Change comment and whether the policy is enabled."""
    with array.store.transaction():
        current = _current(array, policy)
        array.store.save(replace(current, **fields))


def delete(array: Array, policy: SnapshotPolicy) -> None:
    """Delete a policy. Raises: OntapError 1638415, 1638431 while it is in use."""
    if policy.name in _BUILT_IN:
        raise OntapError("1638431", target="uuid")
    with array.store.transaction():
        for volume in array.store.select(Volume, svm_uuid=policy.svm_uuid):
            if volume.snapshot_policy == policy.name:
                raise OntapError("1638415", target="uuid")
        array.store.remove(policy)


# --- schedules


def schedule_uuid(array: Array, name: str) -> str:
    """Return the uuid of a schedule of the cluster."""
    return array.identity(f"schedule.{name}")


def find_schedule(array: Array, policy: SnapshotPolicy, key: str) -> Copy:
    """Return a policy's entry for a schedule. Raises: OntapError 1638412."""
    for entry in policy.copies:
        if schedule_uuid(array, str(entry["schedule"])) == key:
            return entry
    raise OntapError("1638412", target="schedule.uuid")


def add_schedule(array: Array, policy: SnapshotPolicy, fields: Fields) -> Copy:
    """Add a schedule. Raises: OntapError as `create` does, and 1638410."""
    with array.store.transaction():
        policy = _with_schedule(array, _current(array, policy), fields)
        array.store.save(policy)
    return policy.copies[-1]


def change_schedule(
    array: Array, policy: SnapshotPolicy, key: str, fields: Fields
) -> None:
    """Change count, prefix, label or period of a schedule.

    Raises: OntapError 1638412, 1638451, 1638508, 918253.
    """
    _check_period(fields.get("retention_period"))
    with array.store.transaction():
        policy = _current(array, policy)
        before = find_schedule(array, policy, key)
        changed = {**before, **fields}
        others = [entry for entry in policy.copies if entry != before]
        _check_prefix_free(others, str(changed["prefix"]))
        _check_count([*others, changed])
        place = policy.copies.index(before)
        others.insert(place, changed)
        array.store.save(replace(policy, copies=others))


def remove_schedule(array: Array, policy: SnapshotPolicy, key: str) -> None:
    """Remove a schedule. Raises: OntapError 1638411 if it is the last one."""
    with array.store.transaction():
        policy = _current(array, policy)
        gone = find_schedule(array, policy, key)
        copies = [entry for entry in policy.copies if entry != gone]
        if not copies:
            raise OntapError("1638411", target="schedule.uuid")
        array.store.save(replace(policy, copies=copies))


def _current(array: Array, policy: SnapshotPolicy) -> SnapshotPolicy:
    current = array.store.find(SnapshotPolicy, policy.uuid)
    if current is None:
        raise OntapError("4", target="uuid")
    return current


def _with_schedule(
    array: Array, policy: SnapshotPolicy, fields: Fields
) -> SnapshotPolicy:
    """Return the policy with one more schedule, if that is allowed."""
    name, key = fields.get("schedule.name"), fields.get("schedule.uuid")
    if not name and not key:
        raise OntapError("1638408", target="copies.schedule.name")
    schedule = next(
        (
            each
            for each in SCHEDULES
            if name in (None, each) and key in (None, schedule_uuid(array, each))
        ),
        None,
    )
    if schedule is None:
        raise OntapError("1638413", target="copies.schedule", schedule=name or key)
    if "count" not in fields:
        raise OntapError("1638407", target="copies.count")
    _check_period(fields.get("retention_period"))
    if any(entry["schedule"] == schedule for entry in policy.copies):
        raise OntapError(
            "1638410",
            target="copies.schedule",
            schedule=schedule,
            policy=policy.name,
        )
    prefix = fields.get("prefix") or schedule
    _check_prefix_free(policy.copies, prefix)
    entry = {
        "schedule": schedule,
        "count": fields["count"],
        "prefix": prefix,
        **{
            name: fields[name]
            for name in ("snapmirror_label", "retention_period")
            if name in fields
        },
    }
    copies = [*policy.copies, entry]
    _check_count(copies)
    return replace(policy, copies=copies)


def _check_prefix_free(copies: Sequence[Mapping[str, object]], prefix: str) -> None:
    if any(entry["prefix"] == prefix for entry in copies):
        raise OntapError("1638508", target="copies.prefix", prefix=prefix)


def _check_count(copies: Sequence[Mapping[str, object]]) -> None:
    if len(copies) > MAXIMUM_SCHEDULES:
        raise OntapError("1638451", target="copies", limit=MAXIMUM_SCHEDULES)
    if sum(int(str(entry["count"])) for entry in copies) > MAXIMUM_COPIES:
        raise OntapError("1638451", target="copies.count", limit=MAXIMUM_COPIES)


def _check_period(period: str | None) -> None:
    if period is not None and period != "infinite" and not _PERIOD.fullmatch(period):
        raise OntapError("918253", target="retention_period", period=period)
