"""What must be true of one mirror that has settled, at both of its ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from provisioner.catalog.models import Snapshot
from provisioner.copies.models import WorkspaceCopy
from provisioner.lib.names import tag_in
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from tests.chaos.judge import Fault, orphan
from tests.chaos.patience import from_database
from tests.chaos.witness import OntapWitness

M = Mirror.State
S = MirroredSnapshot.State
# New snapshots set mirrors in motion while they are looked at.
LOOKED_FOR_SECONDS = 20.0
# Of the volume, the relationship, and what the source knows of it.
EXACT = {
    M.READY: (1, 1, 1),
    M.DELETED: (0, 0, 0),
    # The former home is not asked, so it still knows the relationship.
    M.PROMOTED: (0, 0, None),
    M.FORMER: (1, None, None),
    M.GIVEN_UP: (1, 0, 0),
}


class MirrorJudge:
    """Compares rows of mirrors with what the clusters have, by the ids of the sites."""

    def __init__(self, clusters: Mapping[int, OntapWitness]) -> None:
        self.clusters = clusters

    def check_at(self, mirror: Mirror) -> list[Fault]:
        """Check a mirror that stands still; what is only in motion gets time to."""
        ends = time.monotonic() + LOOKED_FOR_SECONDS
        while found := self._look_at(mirror):
            if time.monotonic() > ends:
                return found
            time.sleep(0.5)
        return []

    def check_everything(self) -> list[Fault]:
        """Check that all clusters know the relationships of mirrors and copies only."""
        mirrors = from_database(lambda: list(Mirror.objects.select_related()))
        copies = from_database(lambda: list(WorkspaceCopy.objects.select_related()))
        known = {mirror.volume_path for mirror in mirrors}
        known |= {copy.volume_path for copy in copies}
        uuids = {mirror.relationship_uuid for mirror in mirrors}
        uuids |= {copy.relationship_uuid for copy in copies}
        return [
            orphan(f"SnapMirror to {path} is {where} and in no row")
            for cluster in self.clusters.values()
            for where, found in (
                ("at its destination", cluster.relationships()),
                ("at its source", cluster.destinations()),
            )
            for one in found
            if (path := destination_of(one)) not in known and one["uuid"] not in uuids
        ]

    def _look_at(self, known: Mirror) -> list[Fault]:
        rows_of = Mirror.with_deleted.select_related("template__site", "site")
        mirror = from_database(lambda: rows_of.get(pk=known.pk))
        template, state = mirror.template, M(mirror.state)
        home, site = self.clusters[template.site_id], self.clusters[mirror.site_id]
        volumes = site.volumes(tag=tag_in(mirror.volume_comment))
        seen = {
            "volumes": len(volumes),
            "relationships": _ends_at(mirror, site.relationships()),
            "relationships known to the source": _ends_at(mirror, home.destinations()),
        }
        found = [
            orphan(f"mirror {state}: {count} {name}")
            for (name, count), exact in zip(
                seen.items(), EXACT.get(state, (None,) * 3), strict=True
            )
            if count > 1 or (exact is not None and count != exact)
        ]
        if state == M.FAILED and not mirror.status_message:
            found.append(Fault(kind="stuck", what="mirror FAILED without a reason"))
        if state == M.PROMOTED:
            found += self._home(mirror)
        rows = from_database(lambda: list(mirror.snapshots.select_related("snapshot")))
        over = (M.DELETED, M.PROMOTED, M.GIVEN_UP)
        found += [
            Fault(kind="stuck", what=f"{row} is {row.state}, its mirror {state}")
            for row in rows
            if (row.state == S.TRANSFERRING and not mirror.is_moving)
            or (row.state != S.GONE and state in over)
        ]
        if volumes and state == M.READY:
            found += self._snapshots(mirror, rows, volume_uuid=volumes[0]["uuid"])
        return found

    def _home(self, mirror: Mirror) -> list[Fault]:
        """Check that a promoted mirror's volume is its template's, and can be used."""
        template = mirror.template
        if template.site_id != mirror.site_id:
            return [orphan(f"promoted, and the home is at {template.site}")]
        site = self.clusters[mirror.site_id]
        volumes = site.volumes(tag=tag_in(template.volume_comment))
        seen = [
            (one["uuid"], one["name"], one.get("nas", {}).get("path"), one["type"])
            for one in volumes
        ]
        wanted = [
            (mirror.volume_uuid, template.volume_name, template.junction_path, "rw")
        ]
        if seen != wanted:
            return [orphan(f"the new home is {seen}, not {wanted}")]
        there = site.versions(mirror.volume_uuid)
        published = from_database(
            lambda: list(Snapshot.objects.there().filter(template=template))
        )
        return [
            Fault(
                kind="lost", what=f"{snapshot.name} is published, not at the new home"
            )
            for snapshot in published
            if there.get(snapshot.name, {}).get("uuid") != snapshot.ontap_uuid
        ]

    def _snapshots(
        self, mirror: Mirror, rows: list[MirroredSnapshot], *, volume_uuid: str
    ) -> list[Fault]:
        """Check that what can be cloned there is what was published at home."""
        there = self.clusters[mirror.site_id].versions(volume_uuid)
        home = self.clusters[mirror.template.site_id].versions(
            mirror.template.volume_uuid
        )
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
            elif original is not None and not self._are_equal(mirror, copy, original):
                found.append(Fault(kind="lost", what=f"{name} differs at the site"))
        return found

    def _are_equal(
        self, mirror: Mirror, copy: dict[str, Any], original: dict[str, Any]
    ) -> bool:
        if copy["version_uuid"] != original["version_uuid"]:
            return False
        home = self.clusters[mirror.template.site_id]
        at_home = home.files_of(original["uuid"])
        # Deleted at home while it was read, it proves nothing.
        is_there = from_database(
            Snapshot.objects.there().filter(ontap_uuid=original["uuid"]).exists
        )
        there = self.clusters[mirror.site_id].files_of(copy["uuid"])
        return not is_there or there == at_home


def _ends_at(mirror: Mirror, relationships: list[dict[str, Any]]) -> int:
    """Count what leads to a mirror; its source may know a former name of its volume."""
    return sum(
        destination_of(one) == mirror.volume_path
        or one["uuid"] == mirror.relationship_uuid
        for one in relationships
    )


def destination_of(relationship: dict[str, Any]) -> str:
    """Return the volume that a relationship fills, as "svm:volume"."""
    path: str = relationship["destination"]["path"]
    return path
