"""SVM peering: requested here, accepted or rejected on the other cluster.

Source: ``/svm/peers`` of the ONTAP REST reference; ``vserver peer create`` (within a
cluster nobody has to accept), ``accept``, ``reject`` (a rejected peering has to be
deleted before it can be requested again).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.peering import GONE, PEERED, Peer, clusters, peers
from provisioner.lab.ontap.records import Relationship, Svm, SvmPeer

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

# By the state here and the one that is asked for: the state here and there.
_TRANSITIONS = {
    ("pending", PEERED): (PEERED, PEERED),
    ("pending", "rejected"): ("rejected", "rejected"),
    (PEERED, "suspended"): ("suspended", "suspended"),
    ("suspended", PEERED): (PEERED, PEERED),
    (PEERED, PEERED): (PEERED, PEERED),
}


def create(array: Array, fields: Fields) -> Peer:
    """Request a peering; the SVM of another cluster has to accept it.

    Raises: OntapError 1 there is one, 262194, 2621462, 26345575, 26345579, 26345580,
    26345581.
    """
    if not fields.get("svm.name") and not fields.get("svm.uuid"):
        raise OntapError("26345580", target="svm")
    if "applications" not in fields:
        raise OntapError("262194", target="applications", field="applications")
    svm = names.find_svm(array, fields)
    array = array.whole
    cluster = _cluster(array, fields)
    other = _peer_svm(cluster, fields)
    if other.uuid == svm.uuid:
        raise OntapError(
            "26345579", target="peer.svm", field="peer.svm", reason="it is the same SVM"
        )
    if _between(array, svm, other) is not None:
        raise OntapError("1", target="peer.svm")
    name = fields.get("name", other.name)
    _check_name_free(array, svm, name, other=other)
    applications = fields["applications"]
    here, there = (PEERED, PEERED) if cluster is array else ("initiated", "pending")
    _put(cluster, other, svm, name=svm.name, state=there, applications=applications)
    row = _put(array, svm, other, name=name, state=here, applications=applications)
    return Peer(row, svm, other, cluster)


def _cluster(array: Array, fields: Fields) -> Array:
    name, key = fields.get("peer.cluster.name"), fields.get("peer.cluster.uuid")
    if name is None and key is None:
        return array
    for candidate in clusters(array):
        fits = [
            name in (None, candidate.config.cluster),
            key in (None, candidate.identity("cluster")),
        ]
        if all(fits):
            return candidate
        if name is not None and key is not None and any(fits):
            raise OntapError("26345575", target="peer.cluster.uuid")
    raise OntapError("26345581", target="peer.cluster.name", cluster=name or key)


def _peer_svm(cluster: Array, fields: Fields) -> Svm:
    name, key = fields.get("peer.svm.name"), fields.get("peer.svm.uuid")
    if not name and not key:
        raise OntapError("262194", target="peer.svm.name", field="peer.svm.name")
    for svm in cluster.store.select(Svm):
        if name in (None, svm.name) and key in (None, svm.uuid):
            return svm
    raise OntapError("2621462", target="peer.svm.name", svm=name or key)


def _between(array: Array, svm: Svm, other: Svm) -> Peer | None:
    for peer in peers(array):
        if (peer.svm.uuid, peer.peer.uuid) == (svm.uuid, other.uuid):
            return peer
    return None


def _check_name_free(array: Array, svm: Svm, name: str, *, other: Svm) -> None:
    """Refuse a local name that already means another SVM."""
    taken = {each.uuid for each in array.store.select(Svm, name=name)}
    taken |= {
        peer.peer.uuid
        for peer in peers(array)
        if peer.row.name == name and peer.svm.uuid == svm.uuid
    }
    if taken - {other.uuid}:
        raise OntapError("1", target="name")


def _put(array: Array, svm: Svm, other: Svm, **values: Any) -> SvmPeer:
    """Store what a cluster knows of two SVMs, replacing what it knew."""
    with array.store.transaction():
        found = array.store.select(SvmPeer, svm_uuid=svm.uuid, peer_svm_uuid=other.uuid)
        known = _between(array, svm, other)
        if found and known is None:
            array.store.remove(found[0])  # what was deleted comes back as a new one
        row = (
            replace(known.row, **values)
            if known is not None
            else SvmPeer(
                str(uuid.uuid4()),
                svm_uuid=svm.uuid,
                peer_svm_uuid=other.uuid,
                **values,
            )
        )
        array.store.save(row)
    return row


def change(array: Array, peer: Peer, fields: Fields) -> None:
    """Accept, reject, suspend or resume a peering, or change name and applications.

    Raises: OntapError 1 the name is taken, 26345576, 26345577.
    """
    if not fields:
        raise OntapError("26345577", target="state")
    array = array.whole
    here, there = peer.row.state, None
    if "state" in fields:
        wanted = fields["state"]
        if (here, wanted) not in _TRANSITIONS:
            raise OntapError("26345576", target="state", old=here, new=wanted)
        here, there = _TRANSITIONS[here, wanted]
    name = fields.get("name", peer.row.name)
    _check_name_free(array, peer.svm, name, other=peer.peer)
    applications = fields.get("applications", peer.row.applications)
    other_side = _between(peer.array, peer.peer, peer.svm)
    if other_side is not None:
        _put(
            peer.array,
            peer.peer,
            peer.svm,
            name=other_side.row.name,
            state=there or other_side.row.state,
            applications=applications,
        )
    _put(
        array,
        peer.svm,
        peer.peer,
        name=name,
        state=here,
        applications=applications,
    )


def delete(array: Array, peer: Peer) -> None:
    """Delete a peering on both sides. Raises: OntapError 8 while SnapMirror uses it."""
    array = array.whole
    ends = (peer.svm.uuid, peer.peer.uuid)
    for cluster in clusters(array):
        for row in cluster.store.select(Relationship):
            used = (row.source_svm_uuid, row.destination_svm_uuid)
            if used in (ends, ends[::-1]):
                raise OntapError("8", target="uuid")
    gone: dict[str, Any] = {"state": GONE, "applications": []}
    _put(peer.array, peer.peer, peer.svm, name=peer.svm.name, **gone)
    _put(array, peer.svm, peer.peer, name=peer.peer.name, **gone)
