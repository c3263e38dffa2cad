"""Data LIFs: ``/api/network/ip/interfaces``. Each SVM has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.records import Svm

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, svm: Svm) -> Flat:
    node = {"name": array.config.node, "uuid": array.identity("node")}
    return {
        "uuid": array.identity(f"data_lif.{svm.name}"),
        "name": "nfs_lif1",
        "ip": {
            "address": array.config.data_lif,
            "netmask": "8" if array.config.data_lif.startswith("127.") else "24",
            "family": "ipv6" if ":" in array.config.data_lif else "ipv4",
        },
        "enabled": True,
        "state": "up",
        "scope": "svm",
        "svm.name": svm.name,
        "svm.uuid": svm.uuid,
        "services": ["data_core", "data_nfs"],
        "service_policy": {"name": "default-data-files"},
        "location": {
            "is_home": True,
            "home_node": node,
            "node": node,
            "home_port": {"name": "e0d"},
            "port": {"name": "e0d"},
            "auto_revert": True,
            "failover": "default",
        },
        "ipspace": {"name": "Default", "uuid": array.identity("ipspace")},
    }


INTERFACES: Resource[Svm] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "ip",
            "enabled",
            "state",
            "scope",
            "svm.name",
            "svm.uuid",
            "services",
            "service_policy",
            "location",
            "ipspace",
        ),
        trees=(
            "metric",
            "statistics",
            "dns_zone",
            "ddns_enabled",
            "subnet",
            "vip",
            "probe_port",
            "rdma_protocols",
        ),
    ),
    view=_view,
    href=lambda array, svm: (
        f"/api/network/ip/interfaces/{array.identity(f'data_lif.{svm.name}')}"
    ),
    order=("svm.name", "name"),
)


def list_interfaces(call: Call) -> Reply:
    """List the data LIFs."""
    return collection(call, INTERFACES, call.array.store.select(Svm))


def get_interface(call: Call, uuid: str) -> Reply:
    """Return one data LIF."""
    for svm in call.array.store.select(Svm):
        if call.array.identity(f"data_lif.{svm.name}") == uuid:
            return instance(call, INTERFACES, svm)
    raise OntapError("4", target="uuid")


ROUTES = (
    Route(
        "GET", "/api/network/ip/interfaces", list_interfaces, fields=INTERFACES.fields
    ),
    Route(
        "GET",
        "/api/network/ip/interfaces/<uuid>",
        get_interface,
        fields=INTERFACES.fields,
    ),
)
