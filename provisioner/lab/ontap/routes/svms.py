"""SVMs: ``/api/svm/svms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.records import QUEUED, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, svm: Svm) -> Flat:
    def queued() -> list[Volume]:
        return array.store.select(Volume, svm_uuid=svm.uuid, phase=QUEUED)

    return {
        "uuid": svm.uuid,
        "name": svm.name,
        "state": "running",
        "subtype": "default",
        "language": "c.utf_8",
        "comment": "",
        "aggregates": lambda: [
            {
                "name": name,
                "uuid": array.aggregate_uuid(name),
                "state": "online",
                "type": "ssd",
                "available_size": array.aggregate_bytes(name)[1],
            }
            for name in array.aggregates()
        ],
        "ipspace.name": "Default",
        "ipspace.uuid": array.identity("ipspace"),
        "snapshot_policy.name": "default",
        "nfs.allowed": True,
        "nfs.enabled": True,
        "cifs.allowed": False,
        "cifs.enabled": False,
        "max_volumes": str(array.settings.max_volumes_per_svm),
        "ip_interfaces": [
            {
                "uuid": array.identity("data_lif"),
                "name": "nfs_lif1",
                "ip": {"address": array.config.data_lif},
                "services": ["data_core", "data_nfs"],
            }
        ],
        "number_of_volumes_in_recovery_queue": lambda: len(queued()),
        "total_volume_size_in_recovery_queue": lambda: sum(
            volume.size_bytes for volume in queued()
        ),
    }


SVMS: Resource[Svm] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "state",
            "subtype",
            "language",
            "comment",
            "aggregates",
            "ipspace.name",
            "ipspace.uuid",
            "snapshot_policy.name",
            "nfs.allowed",
            "nfs.enabled",
            "cifs.allowed",
            "cifs.enabled",
            "max_volumes",
            "ip_interfaces",
            "number_of_volumes_in_recovery_queue",
            "total_volume_size_in_recovery_queue",
        ),
        trees=(
            "snapmirror",
            "storage",
            "iscsi",
            "fcp",
            "nvme",
            "ndmp",
            "s3",
            "dns",
            "nis",
            "ldap",
            "nsswitch",
            "qos_policy",
            "anti_ransomware",
            "auto_enable_analytics",
            "auto_enable_activity_tracking",
            "certificate",
            "fc_interfaces",
            "routes",
            "is_space_reporting_logical",
            "is_space_enforcement_logical",
            "aggregates_delegated",
        ),
    ),
    view=_view,
    href=lambda array, svm: f"/api/svm/svms/{svm.uuid}",
    order=("name",),
)


def list_svms(call: Call) -> Reply:
    """List the data SVMs."""
    return collection(call, SVMS, call.array.store.select(Svm))


def get_svm(call: Call, uuid: str) -> Reply:
    """Return one SVM."""
    return instance(call, SVMS, call.row(Svm, uuid))


ROUTES = (
    Route("GET", "/api/svm/svms", list_svms, fields=SVMS.fields, own_name="svm"),
    Route("GET", "/api/svm/svms/<uuid>", get_svm, fields=SVMS.fields),
)
