"""The peered cluster, and the schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations.snapmirror_policies import SCHEDULES

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _cluster_peer(array: Array, peer: Array) -> Flat:
    return {
        "uuid": array.identity(f"cluster_peer.{peer.identity('cluster')}"),
        "name": peer.config.cluster,
        "remote.name": peer.config.cluster,
        "status.state": "available",
        "peer_applications": ["snapmirror"],
    }


CLUSTER_PEERS: Resource[Array] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("remote.name", "status.state", "peer_applications"),
        trees=("authentication", "encryption", "ipspace", "initial_allowed_svms"),
    ),
    view=_cluster_peer,
    href=lambda array, peer: f"/api/cluster/peers/{_cluster_peer(array, peer)['uuid']}",
    order=("name",),
)


# Source: `job schedule cron show` of a new cluster; empty: every one.
_CRON: dict[str, dict[str, list[int]]] = {
    "5min": {"minutes": list(range(0, 60, 5))},
    "10min": {"minutes": list(range(0, 60, 10))},
    "hourly": {"minutes": [5]},
    "8hour": {"minutes": [15], "hours": [2, 10, 18]},
    "daily": {"minutes": [10], "hours": [0]},
    "weekly": {"minutes": [15], "hours": [0], "weekdays": [0]},
    "monthly": {"minutes": [20], "hours": [0], "days": [1]},
}


def _schedule(array: Array, name: str) -> Flat:
    return {
        "cron": _CRON[name],
        "uuid": array.identity(f"schedule.{name}"),
        "name": name,
        "type": "cron",
        "scope": "cluster",
    }


SCHEDULE: Resource[str] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("type", "scope", "cron"),
        trees=("interval", "svm", "cluster"),
    ),
    view=_schedule,
    href=lambda array, name: (
        f"/api/cluster/schedules/{array.identity(f'schedule.{name}')}"
    ),
    order=("name",),
)


def list_cluster_peers(call: Call) -> Reply:
    """List the peered cluster, if there is one."""
    peer = call.array.peer
    return collection(call, CLUSTER_PEERS, [] if peer is None else [peer])


def get_cluster_peer(call: Call, uuid: str) -> Reply:
    """Return the peered cluster."""
    peer = call.array.peer
    if peer is None or _cluster_peer(call.array, peer)["uuid"] != uuid:
        raise OntapError("4", target="uuid")
    return instance(call, CLUSTER_PEERS, peer)


def list_schedules(call: Call) -> Reply:
    """List the schedules."""
    return collection(call, SCHEDULE, SCHEDULES)


def get_schedule(call: Call, uuid: str) -> Reply:
    """Return one schedule."""
    for name in SCHEDULES:
        if call.array.identity(f"schedule.{name}") == uuid:
            return instance(call, SCHEDULE, name)
    raise OntapError("4", target="uuid")


ROUTES = (
    Route("GET", "/api/cluster/peers", list_cluster_peers, fields=CLUSTER_PEERS.fields),
    Route(
        "GET",
        "/api/cluster/peers/<uuid>",
        get_cluster_peer,
        fields=CLUSTER_PEERS.fields,
    ),
    Route("GET", "/api/cluster/schedules", list_schedules, fields=SCHEDULE.fields),
    Route("GET", "/api/cluster/schedules/<uuid>", get_schedule, fields=SCHEDULE.fields),
)
