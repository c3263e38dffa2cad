"""The cluster itself: ``GET /api/cluster``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.http import Call, Reply, Route

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, _row: None) -> Flat:
    config = array.config
    generation, major, minor = config.version
    return {
        "name": config.cluster,
        "uuid": array.identity("cluster"),
        "version": {
            "full": f"NetApp Release {generation}.{major}.{minor}: "
            "Fri Jan 24 09:12:10 UTC 2025 (Cloneyard lab)",
            "generation": generation,
            "major": major,
            "minor": minor,
        },
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


def get_cluster(call: Call) -> Reply:
    """Say what this is and which version it speaks."""
    return instance(call, CLUSTER, None)


ROUTES = (Route("GET", "/api/cluster", get_cluster, fields=CLUSTER.fields),)
