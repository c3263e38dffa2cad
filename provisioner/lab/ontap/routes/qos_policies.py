"""QoS policies: ``/api/storage/qos/policies``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import Kind, boolean, integer, text
from provisioner.lab.ontap.http import Call, Reply, Route, answer_done
from provisioner.lab.ontap.operations import qos_policies
from provisioner.lab.ontap.records import QosPolicy

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/storage/qos/policies"

_CHANGE: dict[str, Kind] = {
    "name": text,
    qos_policies.MAX_IOPS: integer,
    qos_policies.MAX_MBPS: integer,
}
_CREATE: dict[str, Kind] = {
    **_CHANGE,
    "svm.name": text,
    "svm.uuid": text,
    qos_policies.SHARED: boolean,
}


def _view(array: Array, policy: QosPolicy) -> Flat:
    is_preset = policy.svm_uuid is None
    owner = None if policy.svm_uuid is None else array.svm(policy.svm_uuid)
    return {
        "uuid": policy.uuid,
        "name": policy.name,
        "scope": "cluster" if is_preset else "svm",
        "policy_class": "preset" if is_preset else "user_defined",
        "svm.name": array.config.cluster if owner is None else owner.name,
        "svm.uuid": array.identity("cluster") if owner is None else owner.uuid,
        "object_count": lambda: len(qos_policies.holders(array, policy)),
        "adaptive": policy.adaptive,
        "fixed": policy.fixed,
    }


QOS: Resource[QosPolicy] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            *("scope", "policy_class", "svm.name", "svm.uuid"),
            *("object_count", "adaptive", "fixed"),
        ),
        trees=("svm", "pgid"),
    ),
    view=_view,
    href=lambda array, policy: f"{_BASE}/{policy.uuid}",
    order=("name",),
)


def list_policies(call: Call) -> Reply:
    """List the QoS policies."""
    return collection(call, QOS, call.array.store.select(QosPolicy))


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one QoS policy."""
    return instance(call, QOS, call.row(QosPolicy, uuid))


def create_policy(call: Call) -> Reply:
    """Create a fixed policy."""
    call.refuse_query(allowed=())
    policy = qos_policies.create(call.array, call.body(_CREATE, read_only=("uuid",)))

    def created() -> dict[str, object] | None:
        return QOS.record(call, policy, wanted=Wanted(QOS.fields, ()))

    location = f"{_BASE}/{policy.uuid}"
    return answer_done(
        call,
        f"POST {location}",
        svm_uuid=policy.svm_uuid,
        created=created,
        location=location,
    )


def change_policy(call: Call, uuid: str) -> Reply:
    """Change name and bounds of a policy; whether it is shared cannot change."""
    policy = call.row(QosPolicy, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=("uuid", "svm", qos_policies.SHARED))
    qos_policies.change(call.array, policy, fields)
    return answer_done(call, f"PATCH {_BASE}/{uuid}", svm_uuid=policy.svm_uuid)


def delete_policy(call: Call, uuid: str) -> Reply:
    """Delete a policy, whether volumes have it or not."""
    policy = call.row(QosPolicy, uuid)
    call.refuse_query(allowed=())
    qos_policies.delete(call.array, policy)
    return answer_done(call, f"DELETE {_BASE}/{uuid}", svm_uuid=policy.svm_uuid)


ROUTES = (
    Route("GET", _BASE, list_policies, fields=QOS.fields),
    Route("POST", _BASE, create_policy, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_policy, fields=QOS.fields),
    Route("PATCH", f"{_BASE}/<uuid>", change_policy, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<uuid>", delete_policy),
)
