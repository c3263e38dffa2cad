"""QoS policies: those that a cluster comes with. They limit nothing here.

Source: "Adaptive QoS policy groups" of the ONTAP documentation; `qos policy-group show`
and `qos adaptive-policy-group show` of a new all-flash cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

NONE = "none"


@dataclass(frozen=True)
class QosPolicy:
    """Bounds of a policy by name: an adaptive one, per TB, or a fixed one."""

    name: str
    adaptive: Mapping[str, int] | None = None
    fixed: Mapping[str, int] | None = None


def _adaptive(name: str, expected: int, peak: int, least: int) -> QosPolicy:
    bounds = {"expected_iops": expected, "peak_iops": peak, "absolute_min_iops": least}
    return QosPolicy(name, adaptive=bounds)


def _fixed(name: str, iops: int, mbps: int) -> QosPolicy:
    bounds = {"max_throughput_iops": iops, "max_throughput_mbps": mbps}
    return QosPolicy(name, fixed=bounds)


POLICIES = (
    _adaptive("extreme", 6144, 12288, 1000),
    _fixed("extreme-fixed", 50_000, 1536),
    _adaptive("performance", 2048, 4096, 500),
    _fixed("performance-fixed", 30_000, 937),
    _adaptive("value", 128, 512, 75),
    _fixed("value-fixed", 15_000, 468),
)
_BY_NAME = {policy.name: policy for policy in POLICIES}


def uuid_of(array: Array, policy: QosPolicy) -> str:
    """Return the uuid of a policy."""
    return array.identity(f"qos.{policy.name}")


def check(array: Array, fields: Mapping[str, Any]) -> None:
    """Refuse a policy that the cluster does not have, by name or by uuid.

    Raises: OntapError 2, as NetApp documents no code.
    """
    name, key = fields.get("qos.policy.name"), fields.get("qos.policy.uuid")
    if name not in (None, NONE) and name not in _BY_NAME:
        raise _unknown("qos.policy.name", name)
    if key is not None:
        found = _by_uuid(array, key)
        if found is None or name not in (None, found.name):
            raise _unknown("qos.policy.uuid", key)


def replaced_by(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the policy fields after a body that names another one."""
    both = {"qos.policy.name", "qos.policy.uuid"}
    named = both & set(fields)
    return dict.fromkeys(both - named) if named else {}


def of_volume(array: Array, remembered: Mapping[str, object]) -> dict[str, object]:
    """Return name and uuid of a volume's policy; empty for none."""
    key = remembered.get("qos.policy.uuid")
    policy = _BY_NAME.get(str(remembered.get("qos.policy.name")))
    if policy is None and key is not None:
        policy = _by_uuid(array, str(key))
    if policy is None:
        return {"qos.policy.name": None, "qos.policy.uuid": None}
    return {
        "qos.policy.name": policy.name,
        "qos.policy.uuid": uuid_of(array, policy),
    }


def _by_uuid(array: Array, key: str) -> QosPolicy | None:
    return next((each for each in POLICIES if uuid_of(array, each) == key), None)


def _unknown(field: str, value: object) -> OntapError:
    return OntapError("2", target=field, field=field, value=str(value))
