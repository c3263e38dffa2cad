"""Changes to volumes that exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import check_junction_path, exact_name
from provisioner.gateways.ontap.types import CloneSplit, Volume, is_same_size
from provisioner.gateways.ontap.verbs import volume_path
from provisioner.gateways.ontap.volumes import Volumes, without_unknown_setting


class VolumeChanges(Volumes):
    """Change a volume, and wait until a read shows the change."""

    def set_volume_policies(
        self,
        uuid: str,
        *,
        export_policy: str | None = None,
        root_mode: str | None = None,
        shows_snapshots: bool | None = None,
    ) -> Volume:
        """Set the export policy, the root directory's mode, or .snapshot visibility.

        None leaves a setting as it is. An export policy also sets snapshot policy
        "none". `root_mode` is in octal digits ("700"). Before 9.13.1 `shows_snapshots`
        has no effect. A clone POST accepts none of these (918247), so they take a
        second call. Safe to repeat.

        Raises: NotFound (volume or policy).
        Source: PATCH /api/storage/volumes/{uuid}.
        """
        wanted = (export_policy, bodies.NO_SNAPSHOT_POLICY)

        def is_set(volume: Volume, shows_snapshots: bool | None) -> bool:
            seen = (volume.export_policy, volume.snapshot_policy)
            has_policies = export_policy is None or seen == wanted
            return (
                has_policies
                and root_mode in (None, volume.root_mode)
                and (
                    shows_snapshots is None
                    or shows_snapshots == self._shows_snapshots(uuid)
                )
            )

        return without_unknown_setting(
            shows_snapshots,
            lambda shows_snapshots: self._change_volume(
                uuid,
                body=bodies.volume_policies(
                    export_policy, root_mode=root_mode, shows_snapshots=shows_snapshots
                ),
                is_done=lambda volume: is_set(volume, shows_snapshots),
            ),
        )

    def _shows_snapshots(self, uuid: str) -> bool | None:
        """Return whether clients of the volume see .snapshot."""
        record = self._ontap.get(volume_path(uuid), query={"fields": bodies.SNAPDIR})
        shows: bool | None = record.get(bodies.SNAPDIR)
        return shows

    def set_volume_comment(self, uuid: str, *, comment: str) -> Volume:
        """Set the comment, "" to remove it. Safe to repeat.

        Raises: NotFound, Refused (longer than 1,023 characters).
        Source: PATCH /api/storage/volumes/{uuid} comment.
        """
        return self._change_volume(
            uuid,
            body={"comment": comment},
            is_done=lambda volume: volume.comment == comment,
        )

    def rename_volume(self, uuid: str, *, name: str, comment: str) -> Volume:
        """Give the volume another name and comment. Safe to repeat.

        Clones, snapshots, the junction path and relationships follow it.

        Raises: NotFound, AlreadyExists (another volume has the name).
        Source: PATCH /api/storage/volumes/{uuid} name, comment.
        """
        return self._change_volume(
            uuid,
            body={"name": exact_name(name), "comment": comment},
            is_done=lambda volume: (volume.name, volume.comment) == (name, comment),
        )

    def set_volume_size(self, uuid: str, *, size_bytes: int) -> Volume:
        """Grow or shrink a volume; ONTAP rounds to blocks. Safe to repeat.

        Raises: NotFound, OutOfSpace, Refused (smaller than its contents).
        Source: PATCH /api/storage/volumes/{uuid}, size.
        """
        return self._change_volume(
            uuid,
            body={"size": size_bytes},
            is_done=lambda volume: is_same_size(volume.size_bytes, size_bytes),
        )

    def set_max_inodes(self, uuid: str, *, max_inodes: int) -> Volume:
        """Set how many files a volume may have. Safe to repeat.

        A higher limit takes no space until files are created.

        Raises: NotFound, Refused (more than `most_inodes`, or fewer than are in use).
        Source: PATCH /api/storage/volumes/{uuid}, files.maximum.
        """
        return self._change_volume(
            uuid,
            body={"files": {"maximum": max_inodes}},
            # ONTAP rounds up to whole blocks of inodes.
            is_done=lambda volume: (volume.max_inodes or 0) >= max_inodes,
        )

    def bring_volume_online(self, uuid: str) -> Volume:
        """Bring the volume online. It has no junction path then. Safe to repeat.

        Raises: NotFound, Refused (the volume is damaged).
        Source: PATCH /api/storage/volumes/{uuid} state online.
        """
        return self._change_volume(
            uuid,
            body={"state": "online"},
            is_done=lambda volume: volume.state == "online",
        )

    def mount_volume(self, uuid: str, *, junction_path: str) -> Volume:
        """Mount the volume at a junction path. Safe to repeat.

        Raises: NotFound, Refused (path taken, invalid, or its parent does not exist).
        Source: PATCH /api/storage/volumes/{uuid} nas.path.
        """
        check_junction_path(junction_path)
        try:
            return self._change_volume(
                uuid,
                body={"nas": {"path": junction_path}},
                is_done=lambda volume: volume.junction_path == junction_path,
            )
        except Refused:
            volume = self.get_volume(uuid)
            if volume.junction_path != junction_path:
                raise
            return volume

    def unmount_volume(self, uuid: str) -> None:
        """Unmount the volume. An unmounted or deleted volume is success.

        Source: PATCH /api/storage/volumes/{uuid} nas.path "".
        """

        def is_unmounted() -> bool | None:
            try:
                return None if self.get_volume(uuid).junction_path else True
            except NotFound:
                return True

        try:
            body = {"nas": {"path": ""}}
            self._write_until(is_unmounted, "PATCH", volume_path(uuid), body=body)
        except (NotFound, Refused):
            if not is_unmounted():
                raise

    def get_clone_split(self, uuid: str) -> CloneSplit:
        """Return how far the split of a clone is.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}?fields=clone.
        """
        return records.clone_split(
            self._ontap.get(volume_path(uuid), query={"fields": records.SPLIT_FIELDS})
        )

    def start_clone_split(self, uuid: str) -> CloneSplit:
        """Start to split a clone from its parent's snapshot. Safe to repeat.

        It goes on in ONTAP until `get_clone_split` says that it is no clone any more.
        Blocks that a stopped split has copied stay copied.

        Raises: NotFound, Refused (mirrored, or no clone), OutOfSpace.
        Source: PATCH /api/storage/volumes/{uuid} clone.split_initiated.
        """
        return self._set_split(uuid, is_wanted=True)

    def stop_clone_split(self, uuid: str) -> CloneSplit:
        """Stop the split of a clone, if one runs. Safe to repeat.

        Raises: NotFound.
        Source: PATCH /api/storage/volumes/{uuid} clone.split_initiated.
        """
        return self._set_split(uuid, is_wanted=False)

    def _set_split(self, uuid: str, *, is_wanted: bool) -> CloneSplit:
        def settled() -> CloneSplit | None:
            seen = self.get_clone_split(uuid)
            is_over = seen.is_clone is False
            return seen if is_over or seen.is_running == is_wanted else None

        if (seen := settled()) is not None:
            return seen
        body = {"clone": {"split_initiated": is_wanted}}
        try:
            self._write("PATCH", volume_path(uuid), body=body)
        except Refused:
            if (seen := settled()) is None:  # it may have ended meanwhile
                raise
            return seen
        return self._wait_for(settled)

    def _change_volume(
        self, uuid: str, *, body: dict[str, Any], is_done: Callable[[Volume], bool]
    ) -> Volume:
        """Change a volume and wait until a read shows the effect."""

        def changed() -> Volume | None:
            volume = self.get_volume(uuid)
            return volume if is_done(volume) else None

        return self._write_until(changed, "PATCH", volume_path(uuid), body=body)
