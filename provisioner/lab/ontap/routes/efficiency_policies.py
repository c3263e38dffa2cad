"""Policies of volume efficiency: ``/api/storage/volume-efficiency-policies``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    boolean,
    choice,
    integer,
    text,
)
from provisioner.lab.ontap.http import Call, Reply, Route, answer_created
from provisioner.lab.ontap.operations import efficiency_policies
from provisioner.lab.ontap.records import EfficiencyPolicy, Svm

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/storage/volume-efficiency-policies"


def _hours(value: object) -> int:
    number = integer(value)
    if not 0 <= number <= efficiency_policies.LONGEST_HOURS:
        raise ValueError(value)
    return number


def _percent(value: object) -> int:
    number = integer(value)
    if not 1 <= number <= 99:
        raise ValueError(value)
    return number


_CHANGE: dict[str, Kind] = {
    "comment": text,
    "duration": _hours,
    "enabled": boolean,
    "qos_policy": choice("background", "best_effort"),
    "schedule.name": text,
    "start_threshold_percent": _percent,
    "type": choice("scheduled", "threshold"),
}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "name": text,
    "svm.name": text,
    "svm.uuid": text,
}


def _view(array: Array, policy: EfficiencyPolicy) -> Flat:
    return {
        "uuid": policy.uuid,
        "name": policy.name,
        "svm.uuid": policy.svm_uuid,
        "svm.name": array.store.get(Svm, policy.svm_uuid).name,
        "comment": policy.comment,
        "type": policy.type,
        "schedule.name": policy.schedule,
        "duration": policy.duration,
        "start_threshold_percent": policy.start_threshold_percent,
        "qos_policy": policy.qos_policy,
        "enabled": policy.enabled,
    }


POLICIES: Resource[EfficiencyPolicy] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            *("svm.uuid", "svm.name", "comment", "type", "schedule.name", "duration"),
            *("start_threshold_percent", "qos_policy", "enabled"),
        ),
        trees=("svm", "schedule"),
    ),
    view=_view,
    href=lambda array, policy: f"{_BASE}/{policy.uuid}",
    order=("svm.name", "name"),
)


def list_policies(call: Call) -> Reply:
    """List the policies of volume efficiency."""
    return collection(call, POLICIES, call.array.store.select(EfficiencyPolicy))


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one policy."""
    return instance(call, POLICIES, call.row(EfficiencyPolicy, uuid))


def create_policy(call: Call) -> Reply:
    """Create a policy of an SVM."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("uuid",))
    policy = efficiency_policies.create(call.array, fields)
    record = POLICIES.record(call, policy, wanted=Wanted(POLICIES.fields, ()))
    return answer_created(call, record, location=f"{_BASE}/{policy.uuid}")


def change_policy(call: Call, uuid: str) -> Reply:
    """Change a policy."""
    policy = call.row(EfficiencyPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=("uuid", "name", "svm"))
    efficiency_policies.change(call.array, policy, fields)
    return Reply()


def delete_policy(call: Call, uuid: str) -> Reply:
    """Delete a policy that no volume uses."""
    policy = call.row(EfficiencyPolicy, uuid)
    call.refuse_query(allowed=())
    efficiency_policies.delete(call.array, policy)
    return Reply()


ROUTES = (
    Route("GET", _BASE, list_policies, fields=POLICIES.fields),
    Route("POST", _BASE, create_policy, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_policy, fields=POLICIES.fields),
    Route("PATCH", f"{_BASE}/<uuid>", change_policy, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<uuid>", delete_policy),
)
