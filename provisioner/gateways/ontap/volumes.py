"""Volumes of the SVM, FlexClones among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import (
    CloneSpec,
    FileEntry,
    Volume,
    VolumeSpec,
    VolumeUsage,
)
from provisioner.gateways.ontap.verbs import (
    INVALID_VALUE,
    UNEXPECTED_ARGUMENT,
    VOLUMES,
    Verbs,
    volume_path,
)

_Seen = TypeVar("_Seen")


class Volumes(Verbs):
    """Find, create and destroy volumes."""

    def find_volume(self, name: str) -> Volume | None:
        """Return the SVM's volume of that name, or None.

        Source: GET /api/storage/volumes?name=&svm.name=.
        """
        found = self._find(
            VOLUMES, name=name, fields=records.VOLUME_FIELDS, in_svm=True
        )
        return records.volume(found) if found else None

    def get_volume(self, uuid: str) -> Volume:
        """Return the volume.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}.
        """
        return records.volume(
            self._ontap.get(volume_path(uuid), query={"fields": records.VOLUME_FIELDS})
        )

    def list_volumes(self, *, comment_prefix: str = "") -> list[Volume]:
        """Return the SVM's volumes whose comment begins with the prefix.

        Source: GET /api/storage/volumes?comment=.
        """
        query = {**self._in_svm(), "fields": records.VOLUME_FIELDS}
        if comment_prefix:
            query["comment"] = f"{exact_name(comment_prefix)}*"
        found = self._ontap.get_records(VOLUMES, query=query)
        volumes = [records.volume(record) for record in found]
        # ONTAP ignores case in this query.
        return [each for each in volumes if each.comment.startswith(comment_prefix)]

    def list_volume_usage(self) -> list[VolumeUsage]:
        """Return the space that each volume of the SVM uses.

        Deleted volumes in the recovery queue are left out. ONTAP answers page by page,
        so it takes few requests even for many volumes.

        Source: GET /api/storage/volumes?fields=clone,space.physical_used.
        """
        found = self._ontap.get_records(
            VOLUMES, query={**self._in_svm(), "fields": records.USAGE_FIELDS}
        )
        return [records.volume_usage(record) for record in found]

    def list_showing_snapshots(
        self, *, comment_prefix: str, shows_snapshots: bool
    ) -> list[str]:
        """Return UUIDs of the SVM's volumes whose clients see .snapshot, or do not.

        Only volumes whose comment begins with the prefix. Before 9.13.1, which does not
        report it, none.

        Source: GET /api/storage/volumes?snapshot_directory_access_enabled=.
        """
        try:
            found = self._ontap.get_records(
                VOLUMES,
                query={
                    **self._in_svm(),
                    "fields": "comment",
                    "comment": f"{exact_name(comment_prefix)}*",
                    bodies.SNAPDIR: str(shows_snapshots).lower(),
                },
            )
        except Refused as refused:
            if refused.remote_code in (UNEXPECTED_ARGUMENT, INVALID_VALUE):
                return []
            raise
        return [
            str(record["uuid"])
            for record in found
            if record.get("comment", "").startswith(comment_prefix)
        ]

    def list_directory(
        self, volume_uuid: str, path: str, *, at_most: int
    ) -> list[FileEntry]:
        """Return the first entries of a directory in a volume, including ".".

        `path` is relative to the volume's root, "" for the root itself.

        Raises: NotFound, Refused (our account may not ask).
        Source: GET /api/storage/volumes/{uuid}/files/{path}.
        """
        # The whole path is one segment of the URL; the root has none.
        below = f"/{quote(path, safe='')}" if path else ""
        page = self._ontap.get(
            f"/storage/volumes/{volume_uuid}/files{below}",
            query={"fields": records.FILE_FIELDS, "max_records": at_most},
        )
        return [records.file_entry(record) for record in page.get("records", ())]

    def create_volume(self, spec: VolumeSpec) -> Volume:
        """Create a thin read-write volume, unmounted.

        Raises: AlreadyExists, NotFound (aggregate), Refused (name, space, limit).
        Source: POST /api/storage/volumes.
        """

        def create(qos_policy: str, shows_snapshots: bool | None) -> Volume:
            within = dataclasses.replace(
                spec, qos_policy=qos_policy, shows_snapshots=shows_snapshots
            )
            return self._create_volume(
                exact_name(spec.name), body=bodies.volume(within, svm=self._svm)
            )

        return self._within_qos(
            spec.qos_policy,
            lambda qos_policy: without_unknown_setting(
                spec.shows_snapshots, partial(create, qos_policy)
            ),
        )

    def create_clone(self, spec: CloneSpec) -> Volume:
        """Create a FlexClone of a snapshot, unmounted, and wait until it is online.

        Raises: AlreadyExists, NotFound (parent or snapshot), Refused (limit, space,
        uid or gid 0).
        Source: POST /api/storage/volumes with clone.is_flexclone.
        """
        return self._within_qos(
            spec.qos_policy,
            lambda qos_policy: self._create_volume(
                exact_name(spec.name),
                body=bodies.clone(
                    dataclasses.replace(spec, qos_policy=qos_policy), svm=self._svm
                ),
            ),
        )

    def _within_qos(self, policy: str, create: Callable[[str], Volume]) -> Volume:
        """Create a volume; without its QoS policy if ONTAP refuses it with one.

        A policy may be gone, and no clone should fail for that. `set_volume_qos` can
        put it below one later.
        """
        try:
            return create(policy)
        except (NotFound, Refused):
            if not policy:
                raise
        return create("")

    def _create_volume(self, name: str, *, body: dict[str, Any]) -> Volume:
        def is_online() -> Volume | None:
            volume = self.find_volume(name)
            return volume if volume and volume.state == "online" else None

        return self._write_until(is_online, "POST", VOLUMES, body=body)

    def delete_volume(self, uuid: str, *, force: bool) -> None:
        """Destroy the volume. A volume that is gone is success.

        `force` skips the recovery queue, in which a deleted volume keeps its space, and
        its parent in use, for hours.

        Raises: InUse (it has clones, or SnapMirror holds it).
        Source: DELETE /api/storage/volumes/{uuid}.
        """
        self._delete(volume_path(uuid), query={"force": "true"} if force else {})


def without_unknown_setting(
    shows_snapshots: bool | None, ask: Callable[[bool | None], _Seen]
) -> _Seen:
    """Repeat the request without the setting for releases before 9.13.1."""
    try:
        return ask(shows_snapshots)
    except Refused as refused:
        if shows_snapshots is None or refused.remote_code != UNEXPECTED_ARGUMENT:
            raise
    return ask(None)
