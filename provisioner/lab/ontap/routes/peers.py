"""Who this cluster and its SVMs are peered with, and the schedules that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.operations.snapmirror_policies import SCHEDULES
from provisioner.lab.ontap.peering import Peer, peers

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _svm_peer(array: Array, row: Peer) -> Flat:
    return {
        "uuid": row.uuid,
        "name": row.peer.name,
        "svm.name": row.svm.name,
        "svm.uuid": row.svm.uuid,
        "peer.svm": {"name": row.peer.name, "uuid": row.peer.uuid},
        "peer.cluster": {
            "name": row.array.config.cluster,
            "uuid": row.array.identity("cluster"),
        },
        "state": "peered",
        "applications": ["snapmirror"],
    }


SVM_PEERS: Resource[Peer] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "svm.name",
            "svm.uuid",
            "peer.svm",
            "peer.cluster",
            "state",
            "applications",
        ),
        trees=("force",),
    ),
    view=_svm_peer,
    href=lambda array, row: f"/api/svm/peers/{row.uuid}",
    order=("svm.name", "name", "uuid"),
)


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


def _schedule(array: Array, name: str) -> Flat:
    return {
        "uuid": array.identity(f"schedule.{name}"),
        "name": name,
        "type": "cron",
        "scope": "cluster",
    }


SCHEDULE: Resource[str] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=("type", "scope"),
        trees=("cron", "interval", "svm", "cluster"),
    ),
    view=_schedule,
    href=lambda array, name: (
        f"/api/cluster/schedules/{array.identity(f'schedule.{name}')}"
    ),
    order=("name",),
)


def list_svm_peers(call: Call) -> Reply:
    """List who the SVMs are peered with."""
    return collection(call, SVM_PEERS, peers(call.array))


def get_svm_peer(call: Call, uuid: str) -> Reply:
    """Return one peer."""
    for row in peers(call.array):
        if row.uuid == uuid:
            return instance(call, SVM_PEERS, row)
    raise OntapError("4", target="uuid")


def list_cluster_peers(call: Call) -> Reply:
    """List the cluster that this one is peered with, if any."""
    peer = call.array.peer
    return collection(call, CLUSTER_PEERS, [] if peer is None else [peer])


def list_schedules(call: Call) -> Reply:
    """List the schedules."""
    return collection(call, SCHEDULE, SCHEDULES)


ROUTES = (
    Route("GET", "/api/svm/peers", list_svm_peers),
    Route("GET", "/api/svm/peers/<uuid>", get_svm_peer),
    Route("GET", "/api/cluster/peers", list_cluster_peers),
    Route("GET", "/api/cluster/schedules", list_schedules),
)
