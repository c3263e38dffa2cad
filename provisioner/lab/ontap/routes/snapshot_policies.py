"""Snapshot policies: ``/api/storage/snapshot-policies``. The built-in ones only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations.names import SNAPSHOT_POLICIES

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _uuid(array: Array, name: str) -> str:
    return array.identity(f"snapshot_policy.{name}")


def _view(array: Array, name: str) -> Flat:
    # A policy of the cluster carries no svm.
    return {
        "uuid": _uuid(array, name),
        "name": name,
        "enabled": name != "none",
        "scope": "cluster",
        "comment": "",
    }


POLICIES: Resource[str] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("enabled", "scope", "comment"),
        trees=("svm", "copies"),
    ),
    view=_view,
    href=lambda array, name: f"/api/storage/snapshot-policies/{_uuid(array, name)}",
    order=("name",),
)


def list_policies(call: Call) -> Reply:
    """List the snapshot policies."""
    return collection(call, POLICIES, SNAPSHOT_POLICIES)


def get_policy(call: Call, uuid: str) -> Reply:
    """Return one snapshot policy."""
    for name in SNAPSHOT_POLICIES:
        if _uuid(call.array, name) == uuid:
            return instance(call, POLICIES, name)
    raise OntapError("4", target="uuid")


ROUTES = (
    Route("GET", "/api/storage/snapshot-policies", list_policies),
    Route("GET", "/api/storage/snapshot-policies/<uuid>", get_policy),
)
