"""SnapMirror at a destination: peers, policies, relationships and transfers.

A relationship belongs to the cluster of its destination, so everything but
`release_relationship` is sent there. Only snapshots requested by name are transferred.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.types import (
    MirrorVolumeSpec,
    Relationship,
    SvmPeer,
    Transfer,
    Volume,
)
from provisioner.gateways.ontap.volumes import Volumes

PEERS = "/svm/peers"
POLICIES = "/snapmirror/policies"
RELATIONSHIPS = "/snapmirror/relationships"


class Mirrors(Volumes):
    """Volumes of the SVM that SnapMirror fills from another SVM."""

    def list_svm_peers(self) -> list[SvmPeer]:
        """Return the SVMs that this one is peered with, or about to be.

        Source: GET /api/svm/peers?svm.name=.
        """
        found = self._ontap.get_records(
            PEERS, query={**self._in_svm(), "fields": records.PEER_FIELDS}
        )
        return [records.svm_peer(record) for record in found]

    def has_mirror_policy(self, name: str) -> bool:
        """Return whether there is a SnapMirror policy of that name.

        Source: GET /api/snapmirror/policies?name=.
        """
        return self._find(POLICIES, name=name, fields="name") is not None

    def create_mirror_policy(self, name: str, *, label: str, keep: int) -> None:
        """Create a policy that takes no snapshots and keeps `keep` with this label.

        The destination keeps them when the source deletes its own. Before 9.11.1, ONTAP
        cannot do this over REST.

        Raises: AlreadyExists.
        Source: POST /api/snapmirror/policies.
        """
        self._write(
            "POST",
            POLICIES,
            body={
                "name": exact_name(name),
                "svm": {"name": self._svm},
                "type": "async",
                "create_snapshot_on_source": False,
                "retention": [{"label": label, "count": str(keep)}],
            },
        )
        self._wait_for(lambda: self.has_mirror_policy(name) or None)

    def create_mirror_volume(self, spec: MirrorVolumeSpec) -> Volume:
        """Create the volume that a relationship fills: read-only and unmounted.

        Raises: AlreadyExists, NotFound (aggregate), OutOfSpace.
        Source: POST /api/storage/volumes.
        """
        return self._create_volume(
            exact_name(spec.name), body=bodies.mirror_volume(spec, svm=self._svm)
        )

    def list_relationships(self) -> list[Relationship]:
        """Return all relationships whose destination is a volume of this SVM.

        Source: GET /api/snapmirror/relationships?destination.svm.name=.
        """
        found = self._ontap.get_records(
            RELATIONSHIPS,
            query={
                "destination.svm.name": exact_name(self._svm),
                "fields": records.RELATIONSHIP_FIELDS,
            },
        )
        return [records.relationship(record) for record in found]

    def find_relationship(self, volume: str) -> Relationship | None:
        """Return the relationship that fills the volume of that name, or None.

        Source: GET /api/snapmirror/relationships?destination.path=.
        """
        found = self._ontap.get_records(
            RELATIONSHIPS,
            query={
                "destination.path": self._path(volume),
                "fields": records.RELATIONSHIP_FIELDS,
            },
        )
        return records.relationship(found[0]) if found else None

    def get_relationship(self, uuid: str) -> Relationship:
        """Return the relationship.

        Raises: NotFound.
        Source: GET /api/snapmirror/relationships/{uuid}.
        """
        return records.relationship(
            self._ontap.get(
                _relationship_path(uuid), query={"fields": records.RELATIONSHIP_FIELDS}
            )
        )

    def create_relationship(
        self, volume: str, *, source_path: str, policy: str
    ) -> Relationship:
        """Create a relationship that has not transferred anything.

        It begins broken off if `volume` is writable and has a snapshot in common with
        the source. `source_path` is "svm:volume", with the SVM's name as a peer here.

        Raises: AlreadyExists, NotFound (policy), Refused (not peered).
        Source: POST /api/snapmirror/relationships; reestablishMirror and
        SnapmirrorCreate in NetApp Trident, which create it over a promoted volume.
        """
        self._write(
            "POST",
            RELATIONSHIPS,
            body={
                "source": {"path": source_path},
                "destination": {"path": self._path(volume)},
                "policy": {"name": policy},
            },
        )
        return self._wait_for(lambda: self.find_relationship(volume))

    def resync_relationship(self, uuid: str) -> None:
        """Start to resynchronize a relationship that is broken off.

        The destination becomes read-only, as of the newest snapshot that both ends
        have. What was written there since is discarded.

        Raises: NotFound, Busy (a transfer is running), Refused.
        Source: PATCH /api/snapmirror/relationships/{uuid}; "snapmirror resync" of the
        ONTAP command reference.
        """
        self._set_state(uuid, "snapmirrored")

    def set_policy(self, relationship_uuid: str, *, policy: str) -> None:
        """Give the relationship another policy. Safe to repeat.

        What it keeps applies from the next transfer on.

        Raises: NotFound (relationship or policy).
        Source: PATCH /api/snapmirror/relationships/{uuid}.
        """
        self._write(
            "PATCH",
            _relationship_path(relationship_uuid),
            body={"policy": {"name": exact_name(policy)}},
        )
        self._wait_for(
            lambda: self.get_relationship(relationship_uuid).policy == policy or None
        )

    def start_transfer(
        self, relationship_uuid: str, *, snapshot: str, throttle_kilobytes: int = 0
    ) -> str:
        """Start to transfer the source's snapshot of that name; return its UUID.

        It has no ONTAP job: `find_transfer` shows its progress. `throttle_kilobytes`
        is per second; 0: no limit.

        Raises: NotFound, Busy (another transfer is running), Refused (the relationship
        is paused or broken off, or the source has no such snapshot).
        Source: POST /api/snapmirror/relationships/{uuid}/transfers.
        """
        body: dict[str, str | int] = {"source_snapshot": exact_name(snapshot)}
        if throttle_kilobytes:
            body["throttle"] = throttle_kilobytes
        answer = self._ontap.write_at_once(
            "POST",
            _transfers_path(relationship_uuid),
            query={"return_records": "true"},
            body=body,
        )
        return str(answer["records"][0]["uuid"])

    def find_transfer(
        self, relationship_uuid: str, *, transfer_uuid: str
    ) -> Transfer | None:
        """Return a transfer, or None if ONTAP has forgotten it, which takes a day.

        Source: GET /api/snapmirror/relationships/{uuid}/transfers/{uuid}.
        """
        path = f"{_transfers_path(relationship_uuid)}/{path_uuid(transfer_uuid)}"
        try:
            found = self._ontap.get(path, query={"fields": records.TRANSFER_FIELDS})
        except NotFound:
            return None
        return records.transfer(found)

    def abort_transfer(self, relationship_uuid: str, *, transfer_uuid: str) -> None:
        """Abort a running transfer; the next one continues from its checkpoint.

        Raises: NotFound, Refused (it has ended).
        Source: PATCH /api/snapmirror/relationships/{uuid}/transfers/{uuid}.
        """
        self._ontap.write_at_once(
            "PATCH",
            f"{_transfers_path(relationship_uuid)}/{path_uuid(transfer_uuid)}",
            body={"state": "aborted"},
        )

    def break_relationship(self, uuid: str) -> None:
        """Make the destination's volume read-write, at its last transferred state.

        The source is not asked. A relationship that is broken off is success.

        Raises: NotFound, Busy (a transfer is running), Refused (not initialized).
        Source: PATCH /api/snapmirror/relationships/{uuid} state paused, then
        broken_off; promoteMirror in NetApp Trident.
        """
        for state in ("paused", "broken_off"):
            reached = {state, "broken_off"}
            if self.get_relationship(uuid).state not in reached:
                self._set_state(uuid, state)
                self._wait_until_in(uuid, reached)

    def resume_relationship(self, uuid: str) -> None:
        """Let a paused relationship transfer again. Safe to repeat.

        Raises: NotFound, Refused.
        Source: PATCH /api/snapmirror/relationships/{uuid} state snapmirrored.
        """
        if self.get_relationship(uuid).state == "paused":
            self._set_state(uuid, "snapmirrored")

    def _wait_until_in(self, uuid: str, states: Collection[str]) -> None:
        self._wait_for(lambda: self.get_relationship(uuid).state in states or None)

    def _set_state(self, uuid: str, state: str) -> None:
        self._write("PATCH", _relationship_path(uuid), body={"state": state})

    def end_relationship(self, relationship: Relationship) -> None:
        """Delete the relationship; a running transfer is aborted first.

        Raises: Busy (the transfer has not stopped yet).
        """
        if relationship.transfer_uuid:
            with contextlib.suppress(NotFound, Refused):  # it has ended meanwhile
                self.abort_transfer(
                    relationship.uuid, transfer_uuid=relationship.transfer_uuid
                )
        self.delete_relationship(relationship.uuid)

    def delete_relationship(self, uuid: str) -> None:
        """Delete the relationship at its destination. One that is gone is success.

        The snapshots stay at both ends; the source has to be told to release it.

        Raises: Busy (a transfer is running).
        Source: DELETE /api/snapmirror/relationships/{uuid}?destination_only=true.
        """
        self._delete(_relationship_path(uuid), query={"destination_only": "true"})

    def release_relationship(self, uuid: str) -> None:
        """Release the relationship at its source, and keep the snapshots.

        A relationship that the source does not know is success.

        Source: DELETE /api/snapmirror/relationships/{uuid}?source_info_only=true.
        """
        with contextlib.suppress(NotFound):
            self._write(
                "DELETE", _relationship_path(uuid), query={"source_info_only": "true"}
            )

    def release_all(self, volume: str) -> None:
        """Release every relationship of which this volume is the source.

        The snapshots stay. Without any, that is success.

        Source: GET /api/snapmirror/relationships?list_destinations_only=true.
        """
        known = self._ontap.get_records(
            RELATIONSHIPS,
            query={
                "list_destinations_only": "true",
                "source.path": self._path(volume),
                "fields": "uuid",
            },
        )
        for each in known:
            self.release_relationship(str(each["uuid"]))

    def _path(self, volume: str) -> str:
        return f"{self._svm}:{exact_name(volume)}"


def _relationship_path(uuid: str) -> str:
    return f"{RELATIONSHIPS}/{path_uuid(uuid)}"


def _transfers_path(relationship_uuid: str) -> str:
    return f"{_relationship_path(relationship_uuid)}/transfers"
