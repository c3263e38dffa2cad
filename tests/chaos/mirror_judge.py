"""What must be true of one mirror that has settled, at both of its ends."""

from __future__ import annotations

import time
from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.lib.names import tag_in
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from tests.chaos.judge import Fault, orphan
from tests.chaos.patience import from_database
from tests.chaos.witness import OntapWitness

M = Mirror.State
S = MirroredSnapshot.State
# New snapshots set mirrors in motion while they are looked at.
LOOKED_FOR_SECONDS = 20.0


class MirrorJudge:
    """Compares rows of mirrors with what both clusters have."""

    def __init__(self, *, home: OntapWitness, abroad: OntapWitness) -> None:
        self.home = home
        self.abroad = abroad

    def check_at(self, mirror: Mirror) -> list[Fault]:
        """Check a mirror that stands still; what is only in motion gets time to."""
        ends = time.monotonic() + LOOKED_FOR_SECONDS
        while found := self._look_at(mirror):
            if time.monotonic() > ends:
                return found
            time.sleep(0.5)
        return []

    def check_everything(self) -> list[Fault]:
        """Check that both clusters know the relationships of mirrors alone."""
        mirrors = from_database(lambda: list(Mirror.objects.select_related()))
        known = {mirror.volume_path for mirror in mirrors}
        return [
            orphan(f"SnapMirror to {path} is {where} and in no row")
            for where, found in (
                ("at its destination", self.abroad.relationships()),
                ("at its source", self.home.destinations()),
            )
            for path in map(_destination, found)
            if path not in known
        ]

    def _look_at(self, mirror: Mirror) -> list[Fault]:
        from_database(
            lambda: mirror.refresh_from_db(fields=["state", "status_message"])
        )
        state = M(mirror.state)
        volumes = self.abroad.volumes(tag=tag_in(mirror.volume_comment))
        seen = {
            "volumes": len(volumes),
            "relationships": self._ends_at(mirror, self.abroad.relationships()),
            "relationships known to the source": self._ends_at(
                mirror, self.home.destinations()
            ),
        }
        exact = {M.READY: 1, M.DELETED: 0}.get(state)
        found = [
            orphan(f"mirror {state}: {count} {name}")
            for name, count in seen.items()
            if count > 1 or (exact is not None and count != exact)
        ]
        if state == M.FAILED and not mirror.status_message:
            found.append(Fault(kind="stuck", what="mirror FAILED without a reason"))
        rows = from_database(lambda: list(mirror.snapshots.select_related("snapshot")))
        found += [
            Fault(kind="stuck", what=f"{row} is {row.state}, its mirror {state}")
            for row in rows
            if (row.state == S.TRANSFERRING and not mirror.is_moving)
            or (row.state != S.GONE and state == M.DELETED)
        ]
        if volumes and state == M.READY:
            found += self._snapshots(mirror, rows, volume_uuid=volumes[0]["uuid"])
        return found

    def _ends_at(self, mirror: Mirror, relationships: list[dict[str, Any]]) -> int:
        return list(map(_destination, relationships)).count(mirror.volume_path)

    def _snapshots(
        self, mirror: Mirror, rows: list[MirroredSnapshot], *, volume_uuid: str
    ) -> list[Fault]:
        """Check that what can be cloned there is what was published at home."""
        there = self.abroad.versions(volume_uuid)
        home = self.home.versions(mirror.template.volume_uuid)
        known = {row.snapshot.name for row in rows}
        found = [
            orphan(f"{name} is at the mirror's site and in no row")
            for name in sorted(set(there) - known)
        ]
        for row in rows:
            if row.state != S.AVAILABLE:
                continue
            name = row.snapshot.name
            copy, original = there.get(name), home.get(name)
            if copy is None or copy["uuid"] != row.ontap_uuid:
                found.append(orphan(f"{name} is available, and ONTAP has {copy}"))
            elif original is not None and not self._are_equal(copy, original):
                found.append(Fault(kind="lost", what=f"{name} differs at the site"))
        return found

    def _are_equal(self, copy: dict[str, Any], original: dict[str, Any]) -> bool:
        if copy["version_uuid"] != original["version_uuid"]:
            return False
        at_home = self.home.files_of(original["uuid"])
        # Deleted at home while it was read, it proves nothing.
        is_there = from_database(
            Snapshot.objects.there().filter(ontap_uuid=original["uuid"]).exists
        )
        return not is_there or self.abroad.files_of(copy["uuid"]) == at_home


def _destination(relationship: dict[str, Any]) -> str:
    path: str = relationship["destination"]["path"]
    return path
