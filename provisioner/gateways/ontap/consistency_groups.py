"""Consistency groups: one snapshot of several volumes at one moment.

Source: /api/application/consistency-groups of the ONTAP REST reference; since 9.10.1,
and with existing NAS volumes since 9.12.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from provisioner.gateways.errors import AlreadyExists
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.types import ConsistencyGroup
from provisioner.gateways.ontap.verbs import Verbs

GROUPS = "/application/consistency-groups"


class ConsistencyGroups(Verbs):
    """Groups of volumes, and their snapshots."""

    def list_groups(self) -> list[ConsistencyGroup]:
        """Return the consistency groups of the SVM with the names of their volumes.

        Raises: NotFound (a release before 9.10.1), Refused (our account may not ask).
        Source: GET /api/application/consistency-groups.
        """
        query = {**self._in_svm(), "fields": "name,volumes"}
        return [_group(each) for each in self._ontap.get_records(GROUPS, query=query)]

    def create_group(self, name: str, *, volumes: Sequence[str]) -> ConsistencyGroup:
        """Make a group of existing volumes. Safe to repeat.

        Raises: AlreadyExists (a group of this name has others), NotFound (volume),
        Refused (a volume is in another group).
        Source: POST /api/application/consistency-groups, provisioning_options.action.
        """

        def seen() -> ConsistencyGroup | None:
            return next(
                (each for each in self.list_groups() if each.name == name), None
            )

        if (found := seen()) is None:
            added = [
                {"name": exact_name(volume), "provisioning_options": {"action": "add"}}
                for volume in volumes
            ]
            body = {"name": name, "svm": {"name": self._svm}, "volumes": added}
            self._write("POST", GROUPS, body=body)
            found = self._wait_for(seen)
        if set(found.volumes) != set(volumes):
            raise AlreadyExists(
                f"The consistency group {name} has other volumes.",
                system="ontap",
                operation=f"POST {GROUPS}",
            )
        return found

    def find_group_snapshot(self, group_uuid: str, *, name: str) -> str | None:
        """Return the UUID of a group's snapshot, or None.

        Raises: NotFound (group).
        Source: GET /api/application/consistency-groups/{uuid}/snapshots.
        """
        query = {"name": exact_name(name), "fields": "name"}
        found = self._ontap.get_records(_snapshots(group_uuid), query=query)
        return str(found[0]["uuid"]) if found else None

    def create_group_snapshot(self, group_uuid: str, *, name: str, comment: str) -> str:
        """Take a snapshot of all volumes of a group at one moment; return its UUID.

        ONTAP gives up after seven seconds, and then no volume keeps one.

        Raises: AlreadyExists, NotFound (group), Refused (limit, space, too slow).
        Source: POST /api/application/consistency-groups/{uuid}/snapshots.
        """
        body = {"name": exact_name(name), "consistency_type": "crash"}
        body["comment"] = comment
        self._write("POST", _snapshots(group_uuid), body=body)
        return self._wait_for(lambda: self.find_group_snapshot(group_uuid, name=name))

    def delete_group_snapshot(self, group_uuid: str, *, snapshot_uuid: str) -> None:
        """Delete a group's snapshot in all its volumes. One that is gone is success.

        Raises: InUse (a clone depends on it).
        Source: DELETE /api/application/consistency-groups/{uuid}/snapshots/{uuid}.
        """
        self._delete(f"{_snapshots(group_uuid)}/{path_uuid(snapshot_uuid)}", query={})

    def delete_group(self, group_uuid: str) -> None:
        """Delete a group; its volumes stay. One that is gone is success.

        Source: DELETE /api/application/consistency-groups/{uuid}.
        """
        self._delete(f"{GROUPS}/{path_uuid(group_uuid)}", query={})


def _snapshots(group_uuid: str) -> str:
    return f"{GROUPS}/{path_uuid(group_uuid)}/snapshots"


def _group(record: dict[str, Any]) -> ConsistencyGroup:
    return ConsistencyGroup(
        uuid=str(record["uuid"]),
        name=str(record["name"]),
        volumes=tuple(str(each["name"]) for each in record.get("volumes", ())),
    )
