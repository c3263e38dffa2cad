"""Snapshot policies: ONTAP takes and deletes snapshots of volumes by itself."""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import Volume, VolumeSnapshot
from provisioner.gateways.ontap.verbs import VOLUMES
from provisioner.gateways.ontap.volume_changes import VolumeChanges

POLICIES = "/storage/snapshot-policies"


class SnapshotPolicies(VolumeChanges):
    """Scheduled snapshots of the SVM's volumes."""

    def has_snapshot_policy(self, name: str) -> bool:
        """Return whether the SVM has a snapshot policy of its own of that name.

        Source: GET /api/storage/snapshot-policies?name=&svm.name=.
        """
        found = self._find(POLICIES, name=name, fields="name", in_svm=True)
        return found is not None

    def create_snapshot_policy(
        self, name: str, *, keep: Mapping[str, int], prefix: str
    ) -> None:
        """Create a policy of the SVM that keeps so many snapshots by schedule.

        `keep` has names of ONTAP's schedules, such as "hourly". A snapshot is named
        “{prefix}{schedule}.{time}”. Once there are too many the oldest goes.

        Raises: AlreadyExists, Refused (schedule, count).
        Source: POST /api/storage/snapshot-policies; its endpoint overview for names and
        retention.
        """
        self._ontap.write_at_once(
            "POST",
            POLICIES,
            body={
                "name": exact_name(name),
                "svm": {"name": self._svm},
                "copies": [
                    {
                        "schedule": {"name": schedule},
                        "count": count,
                        "prefix": f"{prefix}{schedule}",
                    }
                    for schedule, count in keep.items()
                ],
            },
        )
        self._wait_for(lambda: self.has_snapshot_policy(name) or None)

    def set_snapshot_policy(self, uuid: str, *, name: str) -> Volume:
        """Have a volume's snapshots taken by a policy; "none" ends that.

        Snapshots that were taken before stay. Safe to repeat.

        Raises: NotFound (volume or policy).
        Source: PATCH /api/storage/volumes/{uuid} snapshot_policy.name.
        """
        return self._change_volume(
            uuid,
            body={"snapshot_policy": {"name": name}},
            is_done=lambda volume: volume.snapshot_policy == name,
        )

    def list_scheduled_snapshots(
        self, *, prefix: str
    ) -> dict[str, list[VolumeSnapshot]]:
        """Return the snapshots whose name begins with the prefix, by volume's UUID.

        Source: GET /api/storage/volumes/*/snapshots?name=.
        """
        found = self._ontap.get_records(
            f"{VOLUMES}/*/snapshots",
            query={
                **self._in_svm(),
                "name": f"{exact_name(prefix)}*",
                "fields": f"{records.SNAPSHOT_FIELDS},volume.uuid",
            },
        )
        by_volume: dict[str, list[VolumeSnapshot]] = {}
        for record in found:
            rows = by_volume.setdefault(record["volume"]["uuid"], [])
            rows.append(records.snapshot(record))
        return by_volume
