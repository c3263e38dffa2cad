"""SnapMirror relationships: create, change, release.

Source: ``/snapmirror/relationships`` of the ONTAP REST reference. The destination's
cluster has the relationship; the source's has what it knows of its destinations.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import (
    snapmirror_policies,
    snapshots,
    transfers,
    volumes,
)
from provisioner.lab.ontap.peering import (
    Endpoint,
    check_peered,
    cluster_named,
    endpoint,
)
from provisioner.lab.ontap.records import (
    Destination,
    Job,
    Relationship,
    SnapmirrorPolicy,
    Snapshot,
    Svm,
    Transfer,
    Volume,
)

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

MIRRORED = ("snapmirrored", "in_sync")
_TRANSITIONS = {
    ("uninitialized", "snapmirrored"): "initialize",
    ("broken_off", "snapmirrored"): "resync",
    ("paused", "snapmirrored"): "resume",
    ("snapmirrored", "paused"): "pause",
    ("snapmirrored", "broken_off"): "break",
    ("paused", "broken_off"): "break",
    ("paused", "paused"): "nothing",
    ("broken_off", "broken_off"): "nothing",
}


def create(array: Array, fields: Fields) -> tuple[Relationship, Job]:
    """Check a request for a relationship and store it with its job.

    Raises: OntapError with the code of the first rule that it breaks.
    """
    source, destination = _endpoints(array, fields)
    makes_volume = fields.get("create_destination.enabled", False)
    if "state" in fields and not makes_volume:
        raise OntapError("13303873", target="state")
    policy = snapmirror_policies.find(
        array,
        name=fields.get("policy.name", snapmirror_policies.DEFAULT)
        if "policy.uuid" not in fields
        else fields.get("policy.name"),
        key=fields.get("policy.uuid"),
    )
    schedule = snapmirror_policies.check_schedule(fields.get("transfer_schedule.name"))
    assert source.volume is not None
    with array.store.transaction():
        volume = _destination_volume(array, source, destination, create=makes_volume)
        row = Relationship(
            str(uuid.uuid4()),
            source_path=fields["source.path"],
            source_uuid=source.volume.uuid,
            source_svm_uuid=source.svm.uuid,
            source_cluster=source.array.config.cluster,
            destination_path=fields["destination.path"],
            destination_uuid=volume.uuid,
            destination_svm_uuid=destination.svm.uuid,
            policy_uuid=policy.uuid,
            transfer_schedule=schedule,
            throttle=fields.get("throttle", 0),
            state="uninitialized" if volume.type == "dp" else "broken_off",
        )
        array.store.save(row)
        job = array.jobs.create(
            "snapmirror_create",
            description=f"POST /api/snapmirror/relationships/{row.uuid}",
            svm_uuid=destination.svm.uuid,
            arguments={
                "relationship_uuid": row.uuid,
                "initialize": fields.get("state") in MIRRORED,
            },
        )
    _tell_source(array, row, policy)
    return row, job


def _endpoints(array: Array, fields: Fields) -> tuple[Endpoint, Endpoint]:
    for name in ("source.path", "destination.path"):
        if not fields.get(name):
            raise OntapError("262194", target=name, field=name)
    destination = endpoint(
        array,
        fields["destination.path"],
        cluster=array.config.cluster,
        target="destination.path",
    )
    if array.store.find(Svm, destination.svm.uuid) is None:
        raise OntapError("2621462", target="destination.path", svm=destination.svm.name)
    source = endpoint(
        array,
        fields["source.path"],
        cluster=fields.get("source.cluster.name"),
        target="source.path",
    )
    if (source.svm.uuid, source.name) == (destination.svm.uuid, destination.name):
        raise OntapError("6619441", target="destination.path")
    check_peered(array, source, destination)
    if source.volume is None:
        raise OntapError(
            "2", target="source.path", field="source.path", value=fields["source.path"]
        )
    return source, destination


def _destination_volume(
    array: Array, source: Endpoint, destination: Endpoint, *, create: bool
) -> Volume:
    """Return the destination volume, planning it if it is to be created."""
    path = f"{destination.svm.name}:{destination.name}"
    volume = destination.volume
    if volume is None and create:
        assert source.volume is not None
        return volumes.plan(
            array,
            {
                "name": destination.name,
                "svm.name": destination.svm.name,
                "aggregates": [{"name": array.config.aggregate}],
                "size": source.volume.size_bytes,
                "type": "dp",
                "guarantee.type": "none",
            },
        )
    if volume is None:
        raise OntapError(
            "2", target="destination.path", field="destination.path", value=path
        )
    if array.store.count(Relationship, destination_uuid=volume.uuid):
        raise OntapError("6619637", target="destination.path", path=path)
    if create or not (volume.type == "dp" or _can_resync(array, volume, source)):
        raise OntapError("6619546", target="destination.path", path=path)
    if volume.state != "online":
        raise OntapError("917775", svm=destination.svm.name, name=volume.name)
    return volume


def _can_resync(array: Array, volume: Volume, source: Endpoint) -> bool:
    """Return whether a writable volume has a snapshot in common with the source.

    Source: "snapmirror resync" in the ONTAP command reference (volumes with a common
    snapshot); create_snap_mirror_relationship of netapp-dataops-traditional, which
    creates a relationship between two FlexClones and sets its state to snapmirrored.
    """
    assert source.volume is not None
    common = transfers.common_snapshot(
        array, volume, source=source.array, original=source.volume
    )
    return common is not None


def _tell_source(array: Array, row: Relationship, policy: SnapmirrorPolicy) -> None:
    source = cluster_named(array, row.source_cluster)
    known = source.store.find(Destination, row.uuid)
    source.store.save(
        Destination(
            row.uuid,
            source_path=row.source_path,
            source_uuid=row.source_uuid,
            source_svm_uuid=row.source_svm_uuid,
            destination_path=row.destination_path,
            destination_svm_uuid=row.destination_svm_uuid,
            destination_cluster=array.config.cluster,
            policy_name=policy.name,
            policy_type=policy.type,
            base_snapshot_uuid=known.base_snapshot_uuid if known else None,
        )
    )


def make(array: Array, arguments: Fields) -> None:
    """Create the destination volume if requested, and initialize."""
    row = array.store.find(Relationship, arguments["relationship_uuid"])
    if row is None:
        return
    # The lab may have been killed before the source got to know.
    _tell_source(array, row, array.store.get(SnapmirrorPolicy, row.policy_uuid))
    volumes.make(array, {"volume_uuid": row.destination_uuid, "state": "online"})
    if arguments["initialize"] and row.state == "uninitialized":
        transfers.begin(array, row, kind="initialize")


def abandon(array: Array, arguments: Fields) -> None:
    """Drop a relationship whose destination could not be created."""
    row = array.store.find(Relationship, arguments["relationship_uuid"])
    if row is not None:
        volumes.abandon(array, {"volume_uuid": row.destination_uuid})
        _forget(array, row)
        release(array, row.uuid, source=row.source_cluster, keep_snapshots=True)


# --- changes


def request_change(array: Array, row: Relationship, fields: Fields) -> Job:
    """Check a change and store its job; a transition may still fail in the job.

    Raises: OntapError 13303819, 6619699, 262197.
    """
    changes: dict[str, Any] = {}
    if "policy.name" in fields or "policy.uuid" in fields:
        policy = snapmirror_policies.find(
            array, name=fields.get("policy.name"), key=fields.get("policy.uuid")
        )
        changes["policy_uuid"] = policy.uuid
    if "transfer_schedule.name" in fields:
        changes["transfer_schedule"] = snapmirror_policies.check_schedule(
            fields["transfer_schedule.name"]
        )
    if "throttle" in fields:
        changes["throttle"] = fields["throttle"]
    with array.store.transaction():
        return array.jobs.create(
            "snapmirror_change",
            description=f"PATCH /api/snapmirror/relationships/{row.uuid}",
            svm_uuid=row.destination_svm_uuid,
            arguments={
                "relationship_uuid": row.uuid,
                "changes": changes,
                "state": fields.get("state"),
            },
        )


def change(array: Array, arguments: Fields) -> None:
    """Apply the changes and trigger the requested transition.

    Raises: OntapError 13303818, 13303832, 6619715.
    """
    key: str = arguments["relationship_uuid"]
    with array.store.transaction():
        row = array.store.find(Relationship, key)
        if row is None:
            return
        row = replace(row, **arguments["changes"])
        array.store.save(row)
    _tell_source(array, row, array.store.get(SnapmirrorPolicy, row.policy_uuid))
    if arguments["state"]:
        _move(array, row, arguments["state"])


def _move(array: Array, row: Relationship, wanted: str) -> None:
    old = "snapmirrored" if row.state in MIRRORED else row.state
    new = "snapmirrored" if wanted in MIRRORED else wanted
    if old == new == "snapmirrored":
        raise OntapError("13303832", target="state")
    step = _TRANSITIONS.get((old, new))
    if step is None:
        raise OntapError("13303818", target="state", old=row.state, new=wanted)
    if step in ("initialize", "resync"):
        transfers.begin(array, row, kind=step)
        return
    if transfers.running(array, row.uuid):
        raise OntapError("6619715", target="state")
    if step == "break":
        transfers.make_writable(array, row.destination_uuid)
    if step == "resume":
        wanted = transfers.mirrored_state(array, row)
    if step != "nothing":
        transfers.update(array, row.uuid, state=wanted)


# --- delete


def delete(array: Array, key: str, *, scope: str, svm_uuid: str) -> Job:
    """Store the job that deletes the relationship.

    scope: ``both``, ``destination``, ``source`` or ``source_info``.
    """
    with array.store.transaction():
        return array.jobs.create(
            "snapmirror_delete",
            description=f"DELETE /api/snapmirror/relationships/{key}",
            svm_uuid=svm_uuid,
            arguments={"relationship_uuid": key, "scope": scope},
        )


def destroy(array: Array, arguments: Fields) -> None:
    """Delete the relationship, release it at the source, or both.

    Raises: OntapError 6619715 while a transfer runs.
    """
    key, scope = arguments["relationship_uuid"], arguments["scope"]
    row = array.store.find(Relationship, key)
    if row is not None and transfers.running(array, key):
        raise OntapError("6619715", target="uuid")
    if scope != "destination":
        source = row.source_cluster if row else array.config.cluster
        release(array, key, source=source, keep_snapshots=scope == "source_info")
    if row is not None and scope in ("both", "destination"):
        _forget(array, row)


def _forget(array: Array, row: Relationship) -> None:
    with array.store.transaction():
        for transfer in array.store.select(Transfer, relationship_uuid=row.uuid):
            array.store.remove(transfer)
        array.store.remove(row)


def release(array: Array, key: str, *, source: str, keep_snapshots: bool) -> None:
    """Delete the source's record of the relationship, and its snapshots unless kept."""
    home = cluster_named(array, source)
    known = home.store.find(Destination, key)
    if known is None:
        return
    home.store.remove(known)
    prefix = transfers.snapshot_prefix(key)
    for snapshot in home.store.select(Snapshot, volume_uuid=known.source_uuid):
        if snapshot.name.startswith(prefix) and not keep_snapshots:
            snapshots.drop(home, snapshot)
