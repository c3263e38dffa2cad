"""QoS policies: those that a cluster comes with, and creating and changing others.

They limit what a volume reports as its traffic, and nothing else.

Source: "Adaptive QoS policy groups" of the ONTAP documentation; `qos policy-group show`
and `qos adaptive-policy-group show` of a new all-flash cluster; /storage/qos/policies
of the ONTAP REST reference.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.records import LIVE, QosPolicy, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

NONE = "none"
MAX_IOPS, MAX_MBPS = "fixed.max_throughput_iops", "fixed.max_throughput_mbps"
SHARED = "fixed.capacity_shared"

_NAME, _UUID = "qos.policy.name", "qos.policy.uuid"
_BYTES_OF_AN_OPERATION = 4 << 10


def _adaptive(expected: int, peak: int, least: int) -> dict[str, object]:
    return {
        "expected_iops": expected,
        "peak_iops": peak,
        "absolute_min_iops": least,
        "expected_iops_allocation": "allocated_space",
        "peak_iops_allocation": "used_space",
        "block_size": "any",
    }


def _fixed(iops: int, mbps: int, *, is_shared: bool = False) -> dict[str, object]:
    return {
        "max_throughput_iops": iops,
        "max_throughput_mbps": mbps,
        "min_throughput_iops": 0,
        "min_throughput_mbps": 0,
        "capacity_shared": is_shared,
    }


_PRESET: Mapping[str, Mapping[str, Any]] = {
    "extreme": {"adaptive": _adaptive(6144, 12288, 1000)},
    "extreme-fixed": {"fixed": _fixed(50_000, 1536)},
    "performance": {"adaptive": _adaptive(2048, 4096, 500)},
    "performance-fixed": {"fixed": _fixed(30_000, 937)},
    "value": {"adaptive": _adaptive(128, 512, 75)},
    "value-fixed": {"fixed": _fixed(15_000, 468)},
}


def seed(array: Array) -> None:
    """Store the policies that a cluster comes with, as far as they are missing."""
    with array.store.transaction():
        for name, bounds in _PRESET.items():
            if not array.store.select(QosPolicy, name=name):
                key = array.identity(f"qos.{name}")
                array.store.save(QosPolicy(key, name=name, **bounds))


def create(array: Array, fields: Mapping[str, Any]) -> QosPolicy:
    """Store a fixed policy of an SVM.

    Raises: OntapError 262194, 2621462, 8454277 as another one has the name.
    """
    with array.store.transaction():
        svm = names.find_svm(array, fields)
        name = fields.get("name")
        if name is None:
            raise OntapError("262194", target="name", field="name")
        _check_free(array, name)
        bounds = _fixed(
            fields.get(MAX_IOPS, 0),
            fields.get(MAX_MBPS, 0),
            is_shared=fields.get(SHARED, False),
        )
        if MAX_IOPS not in fields and MAX_MBPS not in fields:
            raise OntapError("262194", target="fixed", field="fixed")
        policy = QosPolicy(
            str(uuid.uuid4()), name=name, svm_uuid=svm.uuid, fixed=bounds
        )
        array.store.save(policy)
    return policy


def change(array: Array, policy: QosPolicy, fields: Mapping[str, Any]) -> None:
    """Change the name and the bounds of a fixed policy."""
    with array.store.transaction():
        name = fields.get("name", policy.name)
        if name != policy.name:
            _check_free(array, name)
        bounds = dict(policy.fixed or {})
        for field in (MAX_IOPS, MAX_MBPS):
            if field in fields:
                bounds[field.removeprefix("fixed.")] = fields[field]
        array.store.save(replace(policy, name=name, fixed=bounds or None))


def delete(array: Array, policy: QosPolicy) -> None:
    """Delete a policy; volumes that have it have none afterwards.

    Raises: OntapError 6 for one that the cluster came with.
    """
    with array.store.transaction():
        if policy.svm_uuid is None:
            raise OntapError("6")
        for volume in holders(array, policy):
            kept = {k: v for k, v in volume.remembered.items() if k not in _BOTH}
            array.store.save(replace(volume, remembered=kept))
        array.store.remove(policy)


def holders(array: Array, policy: QosPolicy) -> list[Volume]:
    """Return the volumes that have the policy."""
    named = {_NAME: policy.name, _UUID: policy.uuid}
    return [
        volume
        for volume in array.store.select(Volume, phase=LIVE)
        if any(volume.remembered.get(field) == value for field, value in named.items())
    ]


def check(array: Array, fields: Mapping[str, Any]) -> None:
    """Refuse a policy that the cluster does not have, by name or by uuid.

    Raises: OntapError 2, as NetApp documents no code.
    """
    name, key = fields.get(_NAME), fields.get(_UUID)
    if name not in (None, NONE) and not array.store.select(QosPolicy, name=name):
        raise _unknown(_NAME, name)
    if key is not None:
        found = array.store.find(QosPolicy, key)
        if found is None or name not in (None, found.name):
            raise _unknown(_UUID, key)


def replaced_by(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the policy fields after a body that names another one."""
    named = _BOTH & set(fields)
    return dict.fromkeys(_BOTH - named) if named else {}


def of_volume(array: Array, remembered: Mapping[str, object]) -> dict[str, object]:
    """Return name and uuid of a volume's policy, and its traffic within its bounds."""
    policy = _found(array, remembered)
    return {
        _NAME: policy.name if policy else None,
        _UUID: policy.uuid if policy else None,
        "metric": lambda: _traffic(array, policy),
    }


def _traffic(array: Array, policy: QosPolicy | None) -> dict[str, object]:
    bounds = (policy.fixed if policy else None) or {}
    most = bounds.get("max_throughput_iops") or None
    asked = array.settings.volume_iops
    iops = asked if most is None else min(asked, int(str(most)))
    return {
        "duration": "PT15S",
        "status": "ok",
        "iops": {"read": iops, "write": 0, "other": 0, "total": iops},
        "throughput": {
            "read": iops * _BYTES_OF_AN_OPERATION,
            "write": 0,
            "other": 0,
            "total": iops * _BYTES_OF_AN_OPERATION,
        },
    }


def _found(array: Array, remembered: Mapping[str, object]) -> QosPolicy | None:
    name, key = remembered.get(_NAME), remembered.get(_UUID)
    if name is not None:
        return next(iter(array.store.select(QosPolicy, name=str(name))), None)
    return array.store.find(QosPolicy, str(key)) if key is not None else None


def _check_free(array: Array, name: str) -> None:
    if array.store.select(QosPolicy, name=name):
        raise OntapError("8454277", target="name", name=name)


def _unknown(field: str, value: object) -> OntapError:
    return OntapError("2", target=field, field=field, value=str(value))


_BOTH = {_NAME, _UUID}
