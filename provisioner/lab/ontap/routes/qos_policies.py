"""QoS policies, read-only: ``/api/storage/qos/policies``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations.qos_policies import POLICIES, QosPolicy, uuid_of
from provisioner.lab.ontap.records import LIVE, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/storage/qos/policies"


def _view(array: Array, policy: QosPolicy) -> Flat:
    uuid = uuid_of(array, policy)
    return {
        "uuid": uuid,
        "name": policy.name,
        "scope": "cluster",
        "policy_class": "preset",
        "svm.name": array.config.cluster,
        "svm.uuid": array.identity("cluster"),
        "object_count": lambda: _count(array, policy, uuid),
        "adaptive": policy.adaptive
        and {
            **policy.adaptive,
            "expected_iops_allocation": "allocated_space",
            "peak_iops_allocation": "used_space",
            "block_size": "any",
        },
        "fixed": policy.fixed
        and {
            **policy.fixed,
            "min_throughput_iops": 0,
            "min_throughput_mbps": 0,
            "capacity_shared": False,
        },
    }


def _count(array: Array, policy: QosPolicy, uuid: str) -> int:
    """Return how many volumes have the policy."""
    named = {"qos.policy.name": policy.name, "qos.policy.uuid": uuid}
    return sum(
        any(volume.remembered.get(name) == value for name, value in named.items())
        for volume in array.store.select(Volume, phase=LIVE)
    )


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
    href=lambda array, policy: f"{_BASE}/{uuid_of(array, policy)}",
    order=("name",),
)


def list_policies(call: Call) -> Reply:
    """List the QoS policies."""
    return collection(call, QOS, POLICIES)


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one QoS policy."""
    for policy in POLICIES:
        if uuid_of(call.array, policy) == uuid:
            return instance(call, QOS, policy)
    raise OntapError("4", target="uuid")


ROUTES = (
    Route("GET", _BASE, list_policies, fields=QOS.fields),
    Route("GET", f"{_BASE}/<uuid>", get_policy, fields=QOS.fields),
)
