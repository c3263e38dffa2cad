"""Policies of volume efficiency: stored and assigned, they start nothing themselves.

Source: ``/storage/volume-efficiency-policies`` in the ONTAP REST reference, its
defaults and error tables; the predefined policies of `volume efficiency policy show`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.operations.snapmirror_policies import SCHEDULES
from provisioner.lab.ontap.records import EfficiencyPolicy, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

LONGEST_HOURS = 999
# What a volume without a policy of its own has.
NO_POLICY = ("none", "-")
_PREDEFINED: Mapping[str, Mapping[str, Any]] = {
    "auto": {"type": None, "qos_policy": "background"},
    "default": {"schedule": "daily", "comment": "Default policy"},
    "inline-only": {"type": None, "comment": "Inline-Only policy"},
}
_NOT_MODIFIED = ("auto", "inline-only")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")


def seed(array: Array) -> None:
    """Store the predefined policies that an SVM lacks."""
    with array.store.transaction():
        for svm in array.store.select(Svm):
            for name, values in _PREDEFINED.items():
                if find(array, name, svm_uuid=svm.uuid) is None:
                    key = array.identity(f"efficiency_policy.{svm.uuid}.{name}")
                    policy = EfficiencyPolicy(
                        key, svm_uuid=svm.uuid, name=name, is_predefined=True, **values
                    )
                    array.store.save(policy)


def find(array: Array, name: str, *, svm_uuid: str) -> EfficiencyPolicy | None:
    """Return the SVM's policy with this name, or None."""
    found = array.store.select(EfficiencyPolicy, name=name, svm_uuid=svm_uuid)
    return found[0] if found else None


def check_named(array: Array, volume: Volume, fields: Fields) -> None:
    """Refuse a policy that the volume's SVM does not have. Raises: OntapError 2."""
    field = "efficiency.policy.name"
    name = fields.get(field)
    if name is None or name in NO_POLICY:
        return
    if find(array, name, svm_uuid=volume.svm_uuid) is None:
        raise OntapError("2", target=field, field=field, value=name)


def schedule_of(array: Array, volume: Volume) -> str | None:
    """Return the schedule of a volume's policy."""
    name = str(volume.efficiency.get("policy", "-"))
    policy = find(array, name, svm_uuid=volume.svm_uuid)
    return policy.schedule if policy is not None else None


def create(array: Array, fields: Fields) -> EfficiencyPolicy:
    """Store a policy of an SVM.

    Raises: OntapError 1, 262194, 262197, 6881341, and as `names.find_svm` does.
    """
    svm = names.find_svm(array, fields)
    name = fields.get("name")
    if name is None:
        raise OntapError("262194", target="name", field="name")
    if not _NAME.fullmatch(name):
        raise OntapError("262197", target="name", field="name", value=name)
    given = {key: value for key, value in fields.items() if not key.startswith("svm")}
    with array.store.transaction():
        if find(array, name, svm_uuid=svm.uuid) is not None:
            raise OntapError("1", target="name")
        policy = EfficiencyPolicy(str(uuid.uuid4()), svm_uuid=svm.uuid, name=name)
        policy = _changed(policy, given)
        array.store.save(policy)
    return policy


def change(array: Array, policy: EfficiencyPolicy, fields: Fields) -> None:
    """Change a policy. Raises: OntapError 262197, 6881341, 6881438."""
    if policy.is_predefined and policy.name in _NOT_MODIFIED:
        raise OntapError("6881438", target="uuid", policy=policy.name)
    with array.store.transaction():
        array.store.save(_changed(policy, fields))


def delete(array: Array, policy: EfficiencyPolicy) -> None:
    """Delete a policy. Raises: OntapError 6881346 while it is in use, 6881431."""
    if policy.is_predefined:
        raise OntapError("6881431", target="uuid", policy=policy.name)
    with array.store.transaction():
        for volume in array.store.select(Volume, svm_uuid=policy.svm_uuid):
            if volume.efficiency.get("policy") == policy.name:
                raise OntapError(
                    "6881346", target="uuid", policy=policy.name, volume=volume.name
                )
        array.store.remove(policy)


def _changed(policy: EfficiencyPolicy, fields: Fields) -> EfficiencyPolicy:
    """Return a policy with new fields: a schedule or a threshold, by its type."""
    values = dict(fields)
    schedule = values.pop("schedule.name", policy.schedule)
    changed = replace(policy, **values)
    if changed.type == "threshold":
        return replace(
            changed,
            schedule=None,
            start_threshold_percent=changed.start_threshold_percent or 20,
        )
    schedule = schedule or "daily"
    if schedule not in SCHEDULES:
        raise OntapError("6881341", target="schedule.name", schedule=schedule)
    return replace(changed, schedule=schedule, start_threshold_percent=None)
