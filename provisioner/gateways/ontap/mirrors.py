"""SnapMirror at a destination: peers, relationships, transfers, copies of snapshots.

A relationship belongs to the cluster of its destination, so all but
`release_relationship` are asked there. Only snapshots that are asked for by name are
transferred.
"""

from __future__ import annotations

import contextlib

from provisioner.gateways.errors import GatewayError, NotFound
from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.errors import refusal
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.types import (
    MirrorVolumeSpec,
    Relationship,
    SnapshotVersion,
    SvmPeer,
    Volume,
)
from provisioner.gateways.ontap.verbs import (
    OntapJobStarted,
    forget,
    volume_path,
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
        operation = "svm peer list"
        found = self._ontap.get_records(
            PEERS,
            operation=operation,
            query={**self._in_svm(operation), "fields": records.PEER_FIELDS},
        )
        return [records.svm_peer(record) for record in found]

    def has_mirror_policy(self, name: str) -> bool:
        """Return whether there is a SnapMirror policy of that name.

        Source: GET /api/snapmirror/policies?name=.
        """
        found = self._find(
            POLICIES, operation="mirror policy find", name=name, fields="name"
        )
        return found is not None

    def create_mirror_policy(
        self,
        name: str,
        *,
        label: str,
        keep: int,
        ontap_job_started: OntapJobStarted = forget,
    ) -> None:
        """Create a policy that takes no snapshots and keeps those with a label.

        What it keeps stays when the source deletes its own. Before 9.11.1 ONTAP cannot
        do this over REST.

        Raises: AlreadyExists.
        Source: POST /api/snapmirror/policies.
        """
        operation = "mirror policy create"
        self._ontap.write(
            "POST",
            POLICIES,
            operation=operation,
            body={
                "name": exact_name(name, operation=operation),
                "svm": {"name": self._svm},
                "type": "async",
                "create_snapshot_on_source": False,
                "retention": [{"label": label, "count": str(keep)}],
            },
            ontap_job_started=ontap_job_started,
        )
        self._wait_for(
            lambda: self.has_mirror_policy(name) or None, operation=operation
        )

    def create_mirror_volume(
        self, spec: MirrorVolumeSpec, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        """Create the volume that a relationship fills: read-only and unmounted.

        Raises: AlreadyExists, NotFound (aggregate), OutOfSpace.
        Source: POST /api/storage/volumes.
        """
        operation = "mirror volume create"
        return self._create_volume(
            exact_name(spec.name, operation=operation),
            operation=operation,
            body=bodies.mirror_volume(spec, svm=self._svm),
            ontap_job_started=ontap_job_started,
        )

    def find_relationship(self, volume: str) -> Relationship | None:
        """Return the relationship that fills the volume of that name, or None.

        Source: GET /api/snapmirror/relationships?destination.path=.
        """
        operation = "relationship find"
        found = self._ontap.get_records(
            RELATIONSHIPS,
            operation=operation,
            query={
                "destination.path": self._path(volume, operation=operation),
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
                _relationship_path(uuid),
                operation="relationship get",
                query={"fields": records.RELATIONSHIP_FIELDS},
            )
        )

    def create_relationship(
        self,
        volume: str,
        *,
        source_path: str,
        policy: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Relationship:
        """Create a relationship that has transferred nothing yet.

        `source_path` is "svm:volume", with the name that the SVM has here as a peer.

        Raises: AlreadyExists, NotFound (policy), Refused (not peered, or `volume` is
        not one to mirror to).
        Source: POST /api/snapmirror/relationships.
        """
        operation = "relationship create"
        self._ontap.write(
            "POST",
            RELATIONSHIPS,
            operation=operation,
            body={
                "source": {"path": source_path},
                "destination": {"path": self._path(volume, operation=operation)},
                "policy": {"name": policy},
            },
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(
            lambda: self.find_relationship(volume), operation=operation
        )

    def start_transfer(
        self, relationship_uuid: str, *, snapshot: str, throttle_kilobytes: int = 0
    ) -> None:
        """Begin to transfer the source's snapshot of that name, the first one too.

        It has no ONTAP job: `get_relationship` shows how far it is, and `find_copy`
        whether the snapshot has arrived. `throttle_kilobytes` is a second's; 0: no
        limit.

        Raises: NotFound, Busy (another transfer is running), Refused (the relationship
        is paused or broken off, or the source has no such snapshot).
        Source: POST /api/snapmirror/relationships/{uuid}/transfers.
        """
        operation = "transfer start"
        body: dict[str, str | int] = {
            "source_snapshot": exact_name(snapshot, operation=operation)
        }
        if throttle_kilobytes:
            body["throttle"] = throttle_kilobytes
        self._ontap.write_at_once(
            "POST",
            f"{_relationship_path(relationship_uuid)}/transfers",
            operation=operation,
            body=body,
        )

    def abort_transfer(self, relationship_uuid: str, *, transfer_uuid: str) -> None:
        """End a running transfer; the next one goes on from where it was.

        Raises: NotFound, Refused (it has ended).
        Source: PATCH /api/snapmirror/relationships/{uuid}/transfers/{uuid}.
        """
        path = f"{_relationship_path(relationship_uuid)}/transfers"
        self._ontap.write_at_once(
            "PATCH",
            f"{path}/{path_uuid(transfer_uuid)}",
            operation="transfer abort",
            body={"state": "aborted"},
        )

    def find_transfer_error(
        self, relationship_uuid: str, *, snapshot: str
    ) -> GatewayError | None:
        """Return why the snapshot's last transfer failed, None if ONTAP does not say.

        ONTAP forgets it after a day.

        Raises: NotFound.
        Source: GET /api/snapmirror/relationships/{uuid}/transfers.
        """
        found = self._ontap.get_records(
            f"{_relationship_path(relationship_uuid)}/transfers",
            operation="transfer list",
            query={"fields": "snapshot,end_time,error_info"},
        )
        ended = [
            record
            for record in found
            if record.get("snapshot") == snapshot and record.get("end_time")
        ]
        if not ended:
            return None
        last = max(ended, key=lambda record: str(record["end_time"]))
        info = last.get("error_info", {})
        if not info.get("message"):
            return None
        return refusal(
            "transfer", code=str(info.get("code", "")), message=str(info["message"])
        )

    def find_copy(self, volume_uuid: str, *, name: str) -> SnapshotVersion | None:
        """Return the snapshot of that name with what identifies its contents, or None.

        Original and copy have the same `version_uuid`.

        Raises: NotFound (volume).
        Source: GET /api/storage/volumes/{uuid}/snapshots?name=.
        """
        operation = "snapshot copy find"
        path = volume_path(volume_uuid)
        found = self._ontap.get_records(
            f"{path}/snapshots",
            operation=operation,
            query={
                "name": exact_name(name, operation=operation),
                "fields": "uuid,name,version_uuid",
            },
        )
        if not found:
            self._ontap.get(path, operation=operation, query={"fields": "uuid"})
            return None
        return records.snapshot_version(found[0])

    def delete_relationship(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        """Delete the relationship at its destination. One that is gone is success.

        All snapshots stay, at both ends; the source has to be told to release it.

        Raises: Busy (a transfer is running).
        Source: DELETE /api/snapmirror/relationships/{uuid}?destination_only=true.
        """
        self._delete(
            _relationship_path(uuid),
            operation="relationship delete",
            query={"destination_only": "true"},
            ontap_job_started=ontap_job_started,
        )

    def release_relationship(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        """Let the source forget a relationship, and keep its snapshots.

        To be asked at the source. One that it does not know is success.

        Source: DELETE /api/snapmirror/relationships/{uuid}?source_info_only=true.
        """
        with contextlib.suppress(NotFound):
            self._ontap.write(
                "DELETE",
                _relationship_path(uuid),
                operation="relationship release",
                query={"source_info_only": "true"},
                ontap_job_started=ontap_job_started,
            )

    def _path(self, volume: str, *, operation: str) -> str:
        return f"{self._svm}:{exact_name(volume, operation=operation)}"


def _relationship_path(uuid: str) -> str:
    return f"{RELATIONSHIPS}/{path_uuid(uuid)}"
