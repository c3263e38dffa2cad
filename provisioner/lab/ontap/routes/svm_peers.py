"""SVM peers: ``/api/svm/peers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat, Wanted
from provisioner.lab.ontap.conventions.values import (
    Kind,
    boolean,
    choice,
    list_of,
    text,
)
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route, answer_done
from provisioner.lab.ontap.operations import svm_peers
from provisioner.lab.ontap.peering import Peer, peers

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BASE = "/api/svm/peers"


def _view(array: Array, peer: Peer) -> Flat:
    return {
        "uuid": peer.row.uuid,
        "name": peer.row.name,
        "svm.name": peer.svm.name,
        "svm.uuid": peer.svm.uuid,
        "peer.svm": {"name": peer.peer.name, "uuid": peer.peer.uuid},
        "peer.cluster": {
            "name": peer.array.config.cluster,
            "uuid": peer.array.identity("cluster"),
        },
        "state": peer.row.state,
        "applications": peer.row.applications,
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
    view=_view,
    href=lambda array, peer: f"{_BASE}/{peer.row.uuid}",
    order=("svm.name", "name", "uuid"),
)

_APPLICATIONS = list_of(choice("snapmirror", "file_copy", "lun_copy", "flexcache"))
_CREATE: dict[str, Kind] = {
    "applications": _APPLICATIONS,
    "force": boolean,
    "name": text,
    "svm.name": text,
    "svm.uuid": text,
    "peer.svm.name": text,
    "peer.svm.uuid": text,
    "peer.cluster.name": text,
    "peer.cluster.uuid": text,
}
_CHANGE: dict[str, Kind] = {
    "applications": _APPLICATIONS,
    "force": boolean,
    "name": text,
    "state": choice("peered", "rejected", "suspended"),
}


def list_peers(call: Call) -> Reply:
    """List the peers of the SVMs."""
    return collection(call, SVM_PEERS, peers(call.array))


def _find(call: Call, uuid: str) -> Peer:
    for peer in peers(call.array):
        if peer.row.uuid == uuid:
            return peer
    raise OntapError("4", target="uuid")


def get_peer(call: Call, uuid: str) -> Reply:
    """Return one peer."""
    return instance(call, SVM_PEERS, _find(call, uuid))


def create_peer(call: Call) -> Reply:
    """Request a peering."""
    call.refuse_query(allowed=())
    fields = call.body(_CREATE, read_only=("uuid", "state"))
    peer = svm_peers.create(call.array, fields)

    def created() -> dict[str, object] | None:
        return SVM_PEERS.record(call, peer, wanted=Wanted(SVM_PEERS.fields, ()))

    location = f"{_BASE}/{peer.row.uuid}"
    return answer_done(
        call,
        f"POST {location}",
        svm_uuid=peer.svm.uuid,
        created=created,
        location=location,
    )


def change_peer(call: Call, uuid: str) -> Reply:
    """Accept, reject, suspend or resume a peering, or rename it."""
    peer = _find(call, uuid)
    call.refuse_query(allowed=())
    fields = call.body(_CHANGE, read_only=("uuid", "svm", "peer"))
    fields.pop("force", None)
    svm_peers.change(call.array, peer, fields)
    return answer_done(call, f"PATCH {_BASE}/{uuid}", svm_uuid=peer.svm.uuid)


def delete_peer(call: Call, uuid: str) -> Reply:
    """Delete a peering."""
    peer = _find(call, uuid)
    call.refuse_query(allowed=())
    call.body({"force": boolean})
    svm_peers.delete(call.array, peer)
    return answer_done(call, f"DELETE {_BASE}/{uuid}", svm_uuid=peer.svm.uuid)


ROUTES = (
    Route("GET", _BASE, list_peers, fields=SVM_PEERS.fields),
    Route("POST", _BASE, create_peer, body=_CREATE),
    Route("GET", f"{_BASE}/<uuid>", get_peer, fields=SVM_PEERS.fields),
    Route("PATCH", f"{_BASE}/<uuid>", change_peer, body=_CHANGE),
    Route("DELETE", f"{_BASE}/<uuid>", delete_peer),
)
