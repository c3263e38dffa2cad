"""The cluster itself, its node and its licenses: ``/api/cluster``.

Clients look here for the version and for the FlexClone license.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


SERIAL_NUMBER = "000000000001"


def _view(array: Array, _row: None) -> Flat:
    config = array.config
    return {
        "name": config.cluster,
        "uuid": array.identity("cluster"),
        "version": _version(array),
        "health": "ok",
        "location": "lab",
        "contact": "",
        "timezone.name": "Etc/UTC",
        "management_interfaces": [
            {
                "uuid": array.identity("management_lif"),
                "name": "cluster_mgmt",
                "ip": {"address": config.host},
            }
        ],
    }


CLUSTER: Resource[None] = Resource(
    FieldSet(
        keys=("name", "uuid"),
        standard=(
            "version",
            "health",
            "location",
            "contact",
            "timezone",
            "management_interfaces",
        ),
        trees=(
            "dns_domains",
            "name_servers",
            "ntp_servers",
            "certificate",
            "san_optimized",
            "disaggregated",
            "peering_policy",
            "nodes",
            "auto_enable_analytics",
            "metric",
            "statistics",
        ),
    ),
    view=_view,
    href=lambda array, row: "/api/cluster",
)


def _version(array: Array) -> dict[str, object]:
    generation, major, minor = array.config.version
    return {
        "full": f"NetApp Release {generation}.{major}.{minor}: "
        "Fri Jan 24 09:12:10 UTC 2025 (Cloneyard lab)",
        "generation": generation,
        "major": major,
        "minor": minor,
    }


def _node(array: Array, _row: None) -> Flat:
    return {
        "uuid": array.identity("node"),
        "name": array.config.node,
        "model": "LAB",
        "serial_number": SERIAL_NUMBER,
        "location": "lab",
        "state": "up",
        "membership": "available",
        "version": _version(array),
        "uptime": array.uptime_seconds(),
        "owner": "",
        "controller.over_temperature": "normal",
        "controller.failed_fan.count": 0,
        "controller.failed_power_supply.count": 0,
    }


NODES: Resource[None] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "model",
            "serial_number",
            "location",
            "state",
            "membership",
            "version",
            "uptime",
            "owner",
            "controller.over_temperature",
            "controller.failed_fan.count",
            "controller.failed_power_supply.count",
        ),
        trees=(
            "cluster_interfaces",
            "controller",
            "date",
            "ha",
            "management_interfaces",
            "metric",
            "service_processor",
            "statistics",
            "storage_configuration",
            "system_id",
            "system_machine_type",
            "vendor_serial_number",
        ),
    ),
    view=_node,
    href=lambda array, row: f"/api/cluster/nodes/{array.identity('node')}",
    order=("name",),
)

_LICENSES = {
    "nfs": "NFS License",
    "flexclone": "FlexClone License",
    "snapmirror": "SnapMirror License",
    "snaprestore": "SnapRestore License",
}


def _installed(array: Array) -> list[str]:
    missing = () if array.settings.snapmirror_license else ("snapmirror",)
    return [name for name in _LICENSES if name not in missing]


def _license(array: Array, name: str) -> Flat:
    return {
        "name": name,
        "description": _LICENSES[name],
        "scope": "node",
        "state": "compliant",
        "licenses": [
            {
                "owner": array.config.node,
                "serial_number": SERIAL_NUMBER,
                "active": True,
                "evaluation": False,
                "installed_license": "Cloneyard lab",
            }
        ],
    }


LICENSES: Resource[str] = Resource(
    FieldSet(
        keys=("name",),
        standard=("description", "scope", "state", "licenses"),
        trees=("entitlement",),
    ),
    view=_license,
    href=lambda array, name: f"/api/cluster/licensing/licenses/{name}",
    order=("name",),
)


def get_cluster(call: Call) -> Reply:
    """Return the cluster's name and version."""
    return instance(call, CLUSTER, None)


def list_nodes(call: Call) -> Reply:
    """List the one node."""
    return collection(call, NODES, [None])


def get_node(call: Call, uuid: str) -> Reply:
    """Return the node."""
    if uuid != call.array.identity("node"):
        raise OntapError("4", target="uuid")
    return instance(call, NODES, None)


def list_licenses(call: Call) -> Reply:
    """List the cluster's licenses."""
    return collection(call, LICENSES, _installed(call.array))


def get_license(call: Call, name: str) -> Reply:
    """Return one license."""
    if name not in _installed(call.array):
        raise OntapError("4", target="name")
    return instance(call, LICENSES, name)


ROUTES = (
    Route("GET", "/api/cluster", get_cluster, fields=CLUSTER.fields),
    Route("GET", "/api/cluster/nodes", list_nodes, fields=NODES.fields),
    Route("GET", "/api/cluster/nodes/<uuid>", get_node, fields=NODES.fields),
    Route(
        "GET", "/api/cluster/licensing/licenses", list_licenses, fields=LICENSES.fields
    ),
    Route(
        "GET",
        "/api/cluster/licensing/licenses/<name>",
        get_license,
        fields=LICENSES.fields,
    ),
)
