"""Snapshots of volumes."""

from __future__ import annotations

import datetime as dt
from typing import Any

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.types import (
    SnapshotSpace,
    SnapshotVersion,
    VolumeSnapshot,
)
from provisioner.gateways.ontap.verbs import (
    INVALID_VALUE,
    UNEXPECTED_ARGUMENT,
    VOLUMES,
    Verbs,
    volume_path,
)

_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)


class Snapshots(Verbs):
    """Snapshots of the SVM's volumes."""

    def find_snapshot(self, volume_uuid: str, *, name: str) -> VolumeSnapshot | None:
        """Return the volume's snapshot of that name, or None.

        Raises: NotFound (volume).
        Source: GET /api/storage/volumes/{uuid}/snapshots?name=.
        """
        found = self._snapshot_records(volume_uuid, query={"name": exact_name(name)})
        return records.snapshot(found[0]) if found else None

    def find_snapshot_version(
        self, volume_uuid: str, *, name: str
    ) -> SnapshotVersion | None:
        """Return the volume's snapshot of that name with its version, or None.

        Raises: NotFound (volume).
        Source: GET /api/storage/volumes/{uuid}/snapshots?name=&fields=version_uuid.
        """
        found = self._snapshot_records(
            volume_uuid, query={"name": exact_name(name)}, fields=records.VERSION_FIELDS
        )
        return records.snapshot_version(found[0]) if found else None

    def list_snapshots(self, volume_uuid: str) -> list[VolumeSnapshot]:
        """Return the volume's snapshots, oldest first.

        Raises: NotFound (volume).
        Source: GET /api/storage/volumes/{uuid}/snapshots.
        """
        found = self._snapshot_records(volume_uuid, query={})
        snapshots = [records.snapshot(record) for record in found]
        return sorted(snapshots, key=lambda each: each.created_at or _LONG_AGO)

    def list_snapshot_space(self) -> list[SnapshotSpace]:
        """Return the space of every snapshot of the SVM's volumes.

        A release that does not report what is reclaimable is asked without it.

        Source: GET /api/storage/volumes/*/snapshots?fields=size,reclaimable_space.
        """
        fields = records.SNAPSHOT_SPACE_FIELDS
        try:
            found = self._space_records(fields)
        except Refused as refused:
            if refused.remote_code not in (UNEXPECTED_ARGUMENT, INVALID_VALUE):
                raise
            found = self._space_records(fields.removesuffix(",reclaimable_space"))
        return [records.snapshot_space(record) for record in found]

    def _space_records(self, fields: str) -> list[dict[str, Any]]:
        query = {**self._in_svm(), "fields": fields}
        return self._ontap.get_records(f"{VOLUMES}/*/snapshots", query=query)

    def create_snapshot(
        self, volume_uuid: str, *, name: str, comment: str, label: str = ""
    ) -> VolumeSnapshot:
        """Create a snapshot; SnapMirror policies know it by its label.

        Raises: AlreadyExists, NotFound (volume), Refused (limit, space).
        Source: POST /api/storage/volumes/{uuid}/snapshots.
        """
        return self._write_until(
            lambda: self.find_snapshot(volume_uuid, name=name),
            "POST",
            f"{volume_path(volume_uuid)}/snapshots",
            body={
                "name": exact_name(name),
                "comment": comment,
                **({"snapmirror_label": label} if label else {}),
            },
        )

    def delete_snapshot(self, volume_uuid: str, *, snapshot_uuid: str) -> None:
        """Delete a snapshot. One that is gone is success.

        Raises: InUse (a clone depends on it, 1638555).
        Source: DELETE /api/storage/volumes/{uuid}/snapshots/{uuid}.
        """
        self._delete(
            f"{volume_path(volume_uuid)}/snapshots/{path_uuid(snapshot_uuid)}", query={}
        )

    def _snapshot_records(
        self,
        volume_uuid: str,
        *,
        query: dict[str, str],
        fields: str = records.SNAPSHOT_FIELDS,
    ) -> list[dict[str, Any]]:
        """Return snapshot records.

        Raises: NotFound (volume).
        """
        path = volume_path(volume_uuid)
        found = self._ontap.get_records(
            f"{path}/snapshots", query={**query, "fields": fields}
        )
        if not found:  # an empty answer does not prove that the volume exists
            self._ontap.get(path, query={"fields": "uuid"})
        return found
