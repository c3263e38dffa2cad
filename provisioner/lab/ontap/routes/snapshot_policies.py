"""Snapshot policies and their schedules: ``/api/storage/snapshot-policies``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.conventions.body import flatten
from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    boolean,
    integer,
    label,
    list_of,
    record,
    text,
)
from provisioner.lab.ontap.http import Call, Reply, Route, answer_created
from provisioner.lab.ontap.operations import snapshot_policies
from provisioner.lab.ontap.records import SnapshotPolicy, Svm

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/storage/snapshot-policies"

# How ONTAP shows what a schedule was not given. Source: na_ontap_snapshot_policy of
# NetApp's Ansible collection, which reads both of every schedule.
_UNSET = {"snapmirror_label": "-", "retention_period": "PT0S"}


def _view(array: Array, policy: SnapshotPolicy) -> Flat:
    svm = array.store.find(Svm, policy.svm_uuid)  # a policy of the cluster has none
    return {
        "uuid": policy.uuid,
        "name": policy.name,
        "enabled": policy.enabled,
        "scope": "svm" if svm else "cluster",
        "svm.name": svm.name if svm else None,
        "svm.uuid": svm.uuid if svm else None,
        "comment": policy.comment,
        "copies": [_copy(array, entry) for entry in policy.copies],
    }


def _copy(array: Array, entry: Mapping[str, object]) -> dict[str, object]:
    name = str(entry["schedule"])
    schedule = {"name": name, "uuid": snapshot_policies.schedule_uuid(array, name)}
    return {**_UNSET, **entry, "schedule": schedule}


POLICIES: Resource[SnapshotPolicy] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("enabled", "scope", "svm.name", "svm.uuid", "comment", "copies"),
        trees=("svm",),
    ),
    view=_view,
    href=lambda array, policy: f"{_BASE}/{policy.uuid}",
    order=("name", "uuid"),
)


def _count(value: object) -> int:
    number = integer(value)
    if number < 1:
        raise ValueError(value)
    return number


_COPY: dict[str, Kind] = {
    "count": _count,
    "prefix": text,
    "snapmirror_label": label,
    "retention_period": text,
}
_NEW_COPY: dict[str, Kind] = {
    **_COPY,
    "schedule.name": text,
    "schedule.uuid": text,
}


def _copies(value: object) -> object:
    """Accept the list of copies: objects, nested or dotted."""
    items: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(value)
    return list_of(record(_NEW_COPY))([flatten(item) for item in items])


_CHANGE: dict[str, Kind] = {"comment": text, "enabled": boolean}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "name": text,
    "copies": _copies,
    "svm.name": text,
    "svm.uuid": text,
}
_READ_ONLY = ("uuid", "name", "scope", "svm", "copies")


def list_policies(call: Call) -> Reply:
    """List the snapshot policies."""
    return collection(call, POLICIES, call.array.store.select(SnapshotPolicy))


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one snapshot policy."""
    return instance(call, POLICIES, call.row(SnapshotPolicy, uuid))


def create_policy(call: Call) -> Reply:
    """Create a policy with its schedules."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("uuid", "scope"))
    policy = snapshot_policies.create(call.array, fields)
    record = POLICIES.record(call, policy, wanted=Wanted(POLICIES.fields, ()))
    return answer_created(call, record, location=f"{_BASE}/{policy.uuid}")


def change_policy(call: Call, uuid: str) -> Reply:
    """Change comment and whether it is enabled; schedules have their own paths."""
    policy = call.row(SnapshotPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=_READ_ONLY)
    snapshot_policies.change(call.array, policy, fields)
    return Reply()


def delete_policy(call: Call, uuid: str) -> Reply:
    """Delete a policy that no volume uses."""
    policy = call.row(SnapshotPolicy, uuid)
    call.refuse_query(allowed=())
    snapshot_policies.delete(call.array, policy)
    return Reply()


# --- schedules


def _schedule_view(array: Array, row: tuple[SnapshotPolicy, Any]) -> Flat:
    policy, entry = row
    return {
        **_copy(array, entry),
        "snapshot_policy": {"name": policy.name, "uuid": policy.uuid},
    }


def _schedule_href(array: Array, row: tuple[SnapshotPolicy, Any]) -> str:
    policy, entry = row
    key = snapshot_policies.schedule_uuid(array, entry["schedule"])
    return f"{_BASE}/{policy.uuid}/schedules/{key}"


SCHEDULES: Resource[tuple[SnapshotPolicy, Any]] = Resource(
    FieldSet(
        keys=("schedule", "snapshot_policy"),
        standard=("count", "prefix", "snapmirror_label", "retention_period"),
    ),
    view=_schedule_view,
    href=_schedule_href,
    order=("schedule.name",),
)


def list_schedules(call: Call, uuid: str) -> Reply:
    """List the schedules of a policy."""
    policy = call.row(SnapshotPolicy, uuid)
    return collection(call, SCHEDULES, [(policy, entry) for entry in policy.copies])


def get_schedule(call: Call, uuid: str, schedule_uuid: str) -> Reply:
    """Return one schedule of a policy."""
    policy = call.row(SnapshotPolicy, uuid)
    entry = snapshot_policies.find_schedule(call.array, policy, schedule_uuid)
    return instance(call, SCHEDULES, (policy, entry))


def create_schedule(call: Call, uuid: str) -> Reply:
    """Add a schedule to a policy."""
    policy = call.row(SnapshotPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_NEW_COPY, read_only=("snapshot_policy",))
    entry = snapshot_policies.add_schedule(call.array, policy, fields)
    record = SCHEDULES.record(
        call, (policy, entry), wanted=Wanted(SCHEDULES.fields, ())
    )
    location = _schedule_href(call.array, (policy, entry))
    return answer_created(call, record, location=location)


def change_schedule(call: Call, uuid: str, schedule_uuid: str) -> Reply:
    """Change how many snapshots are kept, their prefix, label or period."""
    policy = call.row(SnapshotPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_COPY, read_only=("schedule", "snapshot_policy"))
    snapshot_policies.change_schedule(call.array, policy, schedule_uuid, fields)
    return Reply()


def delete_schedule(call: Call, uuid: str, schedule_uuid: str) -> Reply:
    """Remove a schedule from a policy."""
    policy = call.row(SnapshotPolicy, uuid)
    call.refuse_query(allowed=())
    snapshot_policies.remove_schedule(call.array, policy, schedule_uuid)
    return Reply()


ROUTES = (
    Route("GET", _BASE, list_policies, fields=POLICIES.fields),
    Route("POST", _BASE, create_policy, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_policy, fields=POLICIES.fields),
    Route("PATCH", f"{_BASE}/<uuid>", change_policy, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<uuid>", delete_policy),
    Route("GET", f"{_BASE}/<uuid>/schedules", list_schedules, fields=SCHEDULES.fields),
    Route("POST", f"{_BASE}/<uuid>/schedules", create_schedule, body=_NEW_COPY),
    Route(
        "GET",
        f"{_BASE}/<uuid>/schedules/<schedule_uuid>",
        get_schedule,
        fields=SCHEDULES.fields,
    ),
    Route(
        "PATCH",
        f"{_BASE}/<uuid>/schedules/<schedule_uuid>",
        change_schedule,
        body=_COPY,
    ),
    Route("DELETE", f"{_BASE}/<uuid>/schedules/<schedule_uuid>", delete_schedule),
)
