"""QoS policies of the SVM, and the volumes below them."""

from __future__ import annotations

from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.types import QosPolicy, QosSpec, VolumeQos
from provisioner.gateways.ontap.verbs import VOLUMES, Verbs, volume_path

_QOS_POLICIES = "/storage/qos/policies"
_NONE = "none"


class QosPolicies(Verbs):
    """Ceilings for the traffic of volumes."""

    def find_qos_policy(self, name: str) -> QosPolicy | None:
        """Return the SVM's QoS policy of that name, or None.

        Raises: Refused (our account may not ask).
        Source: GET /api/storage/qos/policies?name=&svm.name=.
        """
        found = self._find(
            _QOS_POLICIES, name=name, fields=records.QOS_POLICY_FIELDS, in_svm=True
        )
        return records.qos_policy(found) if found else None

    def create_qos_policy(self, spec: QosSpec) -> QosPolicy:
        """Create a fixed QoS policy.

        Raises: AlreadyExists (names are the cluster's), LimitReached, Refused.
        Source: POST /api/storage/qos/policies.
        """
        body = {"name": exact_name(spec.name), "svm": {"name": self._svm}}
        self._write("POST", _QOS_POLICIES, body=body | bodies.qos_limits(spec))
        return self._wait_for(lambda: self.find_qos_policy(spec.name))

    def set_qos_limits(self, uuid: str, spec: QosSpec) -> QosPolicy:
        """Change the limits of a QoS policy. Safe to repeat.

        Whether volumes share them cannot change.

        Raises: NotFound, Refused.
        Source: PATCH /api/storage/qos/policies/{uuid}.
        """
        body = bodies.qos_limits(spec)
        del body["fixed"]["capacity_shared"]
        self._write("PATCH", f"{_QOS_POLICIES}/{path_uuid(uuid)}", body=body)

        def changed() -> QosPolicy | None:
            found = self.find_qos_policy(spec.name)
            return found if found and found.spec == spec else None

        return self._wait_for(changed)

    def delete_qos_policy(self, uuid: str) -> None:
        """Delete a QoS policy. Its volumes have none afterwards. Gone is success.

        Source: DELETE /api/storage/qos/policies/{uuid}.
        """
        self._delete(f"{_QOS_POLICIES}/{path_uuid(uuid)}", query={})

    def list_volume_qos(self) -> list[VolumeQos]:
        """Return the QoS policy and the traffic of each volume of the SVM.

        Source: GET /api/storage/volumes?fields=qos.policy.name,metric.
        """
        found = self._ontap.get_records(
            VOLUMES, query={**self._in_svm(), "fields": records.QOS_FIELDS}
        )
        return [records.volume_qos(record) for record in found]

    def set_volume_qos(self, uuid: str, *, policy: str) -> None:
        """Put a volume below a QoS policy, "" for none. Safe to repeat.

        Raises: NotFound, Refused (there is no such policy), Busy (8454210).
        Source: PATCH /api/storage/volumes/{uuid} qos.policy.name. "none" is the
        reserved word of -qos-policy-group in the command reference, `volume modify`.
        """
        body = {"qos": {"policy": {"name": exact_name(policy) if policy else _NONE}}}
        self._write("PATCH", volume_path(uuid), body=body)

        def is_set() -> bool | None:
            record = self._ontap.get(
                volume_path(uuid), query={"fields": records.QOS_FIELDS}
            )
            return True if records.volume_qos(record).policy == policy else None

        self._wait_for(is_set)
