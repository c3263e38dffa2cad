"""Which SVMs are peered, and the endpoints of SnapMirror paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import LIVE, Svm, SvmPeer, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

# A peering that was deleted; without such a row the setting decides.
GONE = "gone"
PEERED = "peered"


@dataclass(frozen=True)
class Endpoint:
    """One end of a relationship; the volume is None when there is none (yet)."""

    array: Array
    svm: Svm
    name: str
    volume: Volume | None


@dataclass(frozen=True)
class Peer:
    """A local SVM and another one, here or on the cluster `array`."""

    row: SvmPeer
    svm: Svm
    peer: Svm
    array: Array


def clusters(array: Array) -> list[Array]:
    """Return this cluster, unrestricted, and its peer."""
    return [array.whole, *([array.peer] if array.peer is not None else [])]


def cluster_named(array: Array, name: str) -> Array:
    """Return this cluster or its peer by name. Raises: LookupError."""
    for candidate in clusters(array):
        if candidate.config.cluster == name:
            return candidate
    raise LookupError(f"no cluster {name}")


def peers(array: Array) -> list[Peer]:
    """Return the peers of this cluster, including pending ones.

    An account of an SVM sees the peers of that SVM.
    """
    found = []
    for svm in array.store.select(Svm):
        for cluster in clusters(array):
            for other in cluster.store.select(Svm):
                row = None if other.uuid == svm.uuid else _row(array, svm, other)
                if row is not None:
                    found.append(Peer(row, svm, other, cluster))
    return found


def _row(array: Array, svm: Svm, other: Svm) -> SvmPeer | None:
    """Return what is stored of the two; without a request, SVMs are peered."""
    for row in array.store.select(SvmPeer, svm_uuid=svm.uuid, peer_svm_uuid=other.uuid):
        return None if row.state == GONE else row
    if not array.settings.svm_peering:
        return None
    return SvmPeer(
        array.identity(f"peer.{svm.uuid}.{other.uuid}"),
        svm_uuid=svm.uuid,
        peer_svm_uuid=other.uuid,
        name=other.name,
        state=PEERED,
        applications=["snapmirror"],
    )


def endpoint(
    array: Array, path: str, *, cluster: str | None = None, target: str
) -> Endpoint:
    """Return the endpoint ``svm:volume`` here, or on the named cluster.

    The SVM may be called by the local name of a peer.

    Raises: OntapError 13303852 invalid form, 2621462 no such SVM.
    """
    svm_name, colon, name = path.partition(":")
    if not colon or not svm_name or not name:
        raise OntapError("13303852", target=target, path=path)
    named = [
        (candidate, svm)
        for candidate in clusters(array)
        for svm in candidate.store.select(Svm, name=svm_name)
    ]
    named += [
        (peer.array, peer.peer) for peer in peers(array) if peer.row.name == svm_name
    ]
    for candidate, svm in named:
        if cluster is not None and candidate.config.cluster != cluster:
            continue
        found = candidate.store.select(Volume, svm_uuid=svm.uuid, name=name, phase=LIVE)
        return Endpoint(candidate, svm, name, found[0] if found else None)
    raise OntapError("2621462", target=target, svm=svm_name)


def are_peered(array: Array, *, svm_uuid: str, peer_svm_uuid: str) -> bool:
    """Return whether SnapMirror may connect a local SVM with another one."""
    if svm_uuid == peer_svm_uuid:
        return True
    return any(
        peer.row.state == PEERED
        for peer in peers(array)
        if (peer.svm.uuid, peer.peer.uuid) == (svm_uuid, peer_svm_uuid)
    )


def check_peered(array: Array, source: Endpoint, destination: Endpoint) -> None:
    """Refuse SVMs that are not peered. Raises: OntapError 13303939."""
    if not are_peered(
        array, svm_uuid=destination.svm.uuid, peer_svm_uuid=source.svm.uuid
    ):
        raise OntapError(
            "13303939",
            target="source.path",
            svm=destination.svm.name,
            peer=source.svm.name,
        )
