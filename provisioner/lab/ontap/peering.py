"""Where SnapMirror paths lead: SVMs of this cluster and of its peer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import LIVE, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


@dataclass(frozen=True)
class Endpoint:
    """One end of a relationship; the volume is None when there is none (yet)."""

    array: Array
    svm: Svm
    name: str
    volume: Volume | None


@dataclass(frozen=True)
class Peer:
    """A local SVM and one that it is peered with."""

    uuid: str
    svm: Svm
    peer: Svm
    array: Array


def clusters(array: Array) -> list[Array]:
    """Return this cluster and the one it is peered with."""
    return [array, *([array.peer] if array.peer is not None else [])]


def cluster_named(array: Array, name: str) -> Array:
    """Return this cluster or its peer by name. Raises: LookupError."""
    for candidate in clusters(array):
        if candidate.config.cluster == name:
            return candidate
    raise LookupError(f"no cluster {name}")


def peers(array: Array) -> list[Peer]:
    """Return who is peered with whom, seen from this cluster."""
    if not array.settings.svm_peering:
        return []
    return [
        Peer(
            array.identity(f"peer.{svm.uuid}.{other.uuid}"),
            svm=svm,
            peer=other,
            array=cluster,
        )
        for svm in array.store.select(Svm)
        for cluster in clusters(array)
        for other in cluster.store.select(Svm)
        if other.uuid != svm.uuid
    ]


def endpoint(
    array: Array, path: str, *, cluster: str | None = None, target: str
) -> Endpoint:
    """Return what ``svm:volume`` means here, or on the cluster that is named.

    Raises: OntapError 13303852 no such form, 2621462 no such SVM.
    """
    svm_name, colon, name = path.partition(":")
    if not colon or not svm_name or not name:
        raise OntapError("13303852", target=target, path=path)
    for candidate in clusters(array):
        if cluster is not None and candidate.config.cluster != cluster:
            continue
        for svm in candidate.store.select(Svm, name=svm_name):
            found = candidate.store.select(
                Volume, svm_uuid=svm.uuid, name=name, phase=LIVE
            )
            return Endpoint(candidate, svm, name, found[0] if found else None)
    raise OntapError("2621462", target=target, svm=svm_name)


def check_peered(array: Array, source: Endpoint, destination: Endpoint) -> None:
    """Refuse SVMs that are not peered. Raises: OntapError 13303939."""
    if source.svm.uuid == destination.svm.uuid:
        return
    if not array.settings.svm_peering:
        raise OntapError(
            "13303939",
            target="source.path",
            svm=destination.svm.name,
            peer=source.svm.name,
        )
