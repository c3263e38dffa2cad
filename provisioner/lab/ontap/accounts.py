"""Accounts of the lab's ONTAP, with their roles and SVM.

Source: "Predefined roles for SVM administrators" and "Predefined roles for cluster
administrators" of the ONTAP documentation; `security login rest-role create` of the
command reference (the most specific path decides); "Managing FSx for ONTAP users";
`qos policy-group create`, which is for cluster administrators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import (
    ConsistencyGroup,
    Destination,
    EfficiencyPolicy,
    ExportPolicy,
    GroupSnapshot,
    Job,
    QosPolicy,
    QuotaRule,
    Relationship,
    SnapmirrorPolicy,
    Snapshot,
    SnapshotPolicy,
    Svm,
    SvmPeer,
    Transfer,
    Volume,
)
from provisioner.lab.ontap.store import Row, Store

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

R = TypeVar("R", bound=Row)
Access = Literal["none", "readonly", "all"]

READS = ("GET", "HEAD", "OPTIONS")

# Below the API of its SVM; the cluster's hardware, licenses and peers are not its own.
VSADMIN: Mapping[str, Access] = {
    "/": "none",
    "/api": "all",
    "/api/cluster": "readonly",
    "/api/cluster/jobs": "readonly",
    "/api/cluster/licensing": "none",
    "/api/cluster/nodes": "none",
    "/api/cluster/peers": "none",
    "/api/private": "none",
    "/api/storage/aggregates": "none",
    "/api/storage/qos/policies": "readonly",
}

# What docs/security.md gives to Cloneyard where it gets a role of its own.
LEAST: Mapping[str, Access] = {
    "/": "none",
    "/api/application/consistency-groups": "all",
    "/api/cluster/jobs": "readonly",
    "/api/network/ip/interfaces": "readonly",
    "/api/protocols/nfs/export-policies": "all",
    "/api/snapmirror/policies": "all",
    "/api/snapmirror/relationships": "all",
    "/api/storage/qos/policies": "readonly",
    "/api/storage/snapshot-policies": "all",
    "/api/storage/volumes": "all",
    "/api/svm/peers": "readonly",
    "/api/svm/svms": "readonly",
}

# A rented file system: its administrator has no rights to what it runs on.
FSXADMIN: Mapping[str, Access] = {
    "/": "none",
    "/api": "all",
    "/api/cluster": "readonly",
    "/api/cluster/jobs": "all",
    "/api/cluster/licensing": "none",
    "/api/cluster/nodes": "none",
    "/api/private": "none",
    "/api/storage/aggregates": "none",
}


@dataclass(frozen=True)
class Login:
    """An account: what its role allows by path, and the SVM that it belongs to.

    svm: its name; None: the cluster.
    """

    privileges: Mapping[str, Access] = field(default_factory=lambda: {"/": "all"})
    svm: str | None = None

    def check(self, method: str, path: str) -> None:
        """Refuse what the role does not allow. Raises: OntapError 6."""
        access = self._access_to(path)
        if access == "none" or (access == "readonly" and method not in READS):
            raise OntapError("6")

    def _access_to(self, path: str) -> Access:
        while path not in self.privileges:
            path = path.rpartition("/")[0] or "/"
        return self.privileges[path]

    def view_of(self, array: Array) -> Array:
        """Return the array as this account sees it."""
        if self.svm is None:
            return array
        svm = array.store.select(Svm, name=self.svm)[0]
        return cast("Array", _SvmView(array, svm.uuid))


def logins(*, user: str, readonly_user: str, svm: str) -> dict[str, Login]:
    """Return the accounts of a lab by name; those of an SVM belong to the first one."""
    return {
        user: Login(),
        readonly_user: Login({"/": "readonly"}),
        "fsxadmin": Login(FSXADMIN),
        "vsadmin": Login(VSADMIN, svm=svm),
        "leastadmin": Login(LEAST, svm=svm),
    }


class _SvmView:
    """The array, restricted to the rows of one SVM."""

    def __init__(self, array: Array, svm_uuid: str) -> None:
        self.whole = array
        self.store = _SvmStore(array.store, svm_uuid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)


class _SvmStore:
    """The state, without the rows of other SVMs.

    Rows of the whole cluster are found, but cannot be changed.
    """

    def __init__(self, store: Store, svm_uuid: str) -> None:
        self._store = store
        self.svm_uuid = svm_uuid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def find(self, kind: type[R], key: str | int | None) -> R | None:
        """Return the SVM's row with the key, or None."""
        row = self._store.find(kind, key)
        return row if row is not None and self._is_ours(row) else None

    def select(self, kind: type[R], **equals: str | int | None) -> list[R]:
        """Return the SVM's rows whose searched columns equal the values."""
        return [row for row in self._store.select(kind, **equals) if self._is_ours(row)]

    def count(self, kind: type[Row], **equals: str | int) -> int:
        """Return how many rows `select` would return."""
        return len(self.select(kind, **equals))

    def save(self, row: Row) -> None:
        """Write a row. Raises: OntapError 6 for rows of the cluster."""
        self._require_own(row)
        self._store.save(row)

    def remove(self, row: Row) -> None:
        """Delete a row. Raises: OntapError 6 for rows of the cluster."""
        self._require_own(row)
        self._store.remove(row)

    def _require_own(self, row: Row) -> None:
        if (
            isinstance(row, QosPolicy | SnapshotPolicy | SnapmirrorPolicy)
            and row.svm_uuid is None
        ):
            raise OntapError("6")

    def _is_ours(self, row: Row) -> bool:
        ours = self.svm_uuid
        if isinstance(row, Svm):
            return row.uuid == ours
        if isinstance(
            row,
            Volume
            | ExportPolicy
            | EfficiencyPolicy
            | Job
            | SvmPeer
            | ConsistencyGroup
            | QuotaRule,
        ):
            return row.svm_uuid == ours
        if isinstance(row, GroupSnapshot):
            return self.find(ConsistencyGroup, row.group_uuid) is not None
        if isinstance(row, Relationship):
            return row.destination_svm_uuid == ours
        if isinstance(row, Destination):
            return row.source_svm_uuid == ours
        if isinstance(row, QosPolicy | SnapshotPolicy | SnapmirrorPolicy):
            return row.svm_uuid in (None, ours)
        if isinstance(row, Transfer):
            return self.find(Relationship, row.relationship_uuid) is not None
        if isinstance(row, Snapshot):
            return self.find(Volume, row.volume_uuid) is not None
        return True
