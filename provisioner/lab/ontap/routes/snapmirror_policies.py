"""SnapMirror policies: ``/api/snapmirror/policies``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    anything,
    boolean,
    choice,
    integer,
    list_of,
    record,
    text,
)
from provisioner.lab.ontap.http import Call, Reply, Route, answer_done
from provisioner.lab.ontap.operations import snapmirror_policies
from provisioner.lab.ontap.records import SnapmirrorPolicy, Svm

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/snapmirror/policies"


def _view(array: Array, policy: SnapmirrorPolicy) -> Flat:
    svm = array.store.find(Svm, policy.svm_uuid)
    return {
        "uuid": policy.uuid,
        "name": policy.name,
        "type": policy.type,
        "scope": "svm" if svm else "cluster",
        "svm.name": svm.name if svm else None,
        "svm.uuid": svm.uuid if svm else None,
        "comment": policy.comment,
        "create_snapshot_on_source": policy.create_snapshot_on_source,
        "copy_all_source_snapshots": policy.copy_all_source_snapshots,
        "copy_latest_source_snapshot": policy.copy_latest_source_snapshot,
        "retention": policy.retention or None,
        "transfer_schedule.name": policy.transfer_schedule,
        "throttle": policy.throttle,
        "identity_preservation": policy.identity_preservation,
    }


POLICIES: Resource[SnapmirrorPolicy] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "type",
            "scope",
            "svm.name",
            "svm.uuid",
            "comment",
            "create_snapshot_on_source",
            "copy_all_source_snapshots",
            "copy_latest_source_snapshot",
            "retention",
            "transfer_schedule.name",
            "throttle",
            "identity_preservation",
        ),
        trees=(
            "svm",
            "transfer_schedule",
            "network_compression_enabled",
            "rpo",
            "sync_common_snapshot_schedule",
            "sync_type",
            "snapshot_lock_mode",
        ),
    ),
    view=_view,
    href=lambda array, policy: f"{_BASE}/{policy.uuid}",
    order=("name",),
)


def _count(value: object) -> str:
    number = integer(value)
    if not 1 <= number <= 1023:
        raise ValueError(value)
    return str(number)


_CHANGE: dict[str, Kind] = {
    "name": text,
    "comment": text,
    "retention": list_of(
        record(
            {
                "label": text,
                "count": _count,
                "creation_schedule": anything,
                "prefix": text,
                "preserve": boolean,
                "warn": integer,
                "period": text,
            }
        )
    ),
    "transfer_schedule.name": text,
    "transfer_schedule.uuid": text,
    "throttle": integer,
    "identity_preservation": choice("full", "exclude_network_config"),
    "network_compression_enabled": boolean,
}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "svm.name": text,
    "svm.uuid": text,
    "type": choice("async", "sync", "continuous"),
    "sync_type": choice("sync", "strict_sync", "automated_failover"),
    "create_snapshot_on_source": boolean,
    "copy_all_source_snapshots": boolean,
    "copy_latest_source_snapshot": boolean,
}
_READ_ONLY = ("uuid", "scope", "svm", "type", "create_snapshot_on_source")


def list_policies(call: Call) -> Reply:
    """List the policies."""
    return collection(call, POLICIES, call.array.store.select(SnapmirrorPolicy))


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one policy."""
    return instance(call, POLICIES, call.row(SnapmirrorPolicy, uuid))


def create_policy(call: Call) -> Reply:
    """Create a policy."""
    call.refuse_query(allowed=())
    policy = snapmirror_policies.create(
        call.array, call.body(_CREATE, read_only=("uuid", "scope"))
    )

    def created() -> dict[str, object] | None:
        return POLICIES.record(call, policy, wanted=Wanted(POLICIES.fields, ()))

    location = f"{_BASE}/{policy.uuid}"
    return answer_done(
        call,
        f"POST {location}",
        svm_uuid=policy.svm_uuid,
        created=created,
        location=location,
    )


def change_policy(call: Call, uuid: str) -> Reply:
    """Change a policy."""
    policy = call.row(SnapmirrorPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=_READ_ONLY)
    snapmirror_policies.change(call.array, policy, fields)
    return answer_done(call, f"PATCH {_BASE}/{uuid}", svm_uuid=policy.svm_uuid)


def delete_policy(call: Call, uuid: str) -> Reply:
    """Delete a policy."""
    policy = call.row(SnapmirrorPolicy, uuid)
    call.refuse_query(allowed=())
    snapmirror_policies.delete(call.array, policy)
    return answer_done(call, f"DELETE {_BASE}/{uuid}", svm_uuid=policy.svm_uuid)


ROUTES = (
    Route("GET", _BASE, list_policies, fields=POLICIES.fields),
    Route("POST", _BASE, create_policy, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_policy, fields=POLICIES.fields),
    Route("PATCH", f"{_BASE}/<uuid>", change_policy, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<uuid>", delete_policy),
)
