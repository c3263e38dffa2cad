"""The .snapshot directory at the root of a volume, as NFSv3 clients see it.

It shows every snapshot, read-only, unless the volume hides it. It is mounted where the
volume is, so it is in no snapshot. On btrfs each snapshot has a device of its own,
elsewhere the volume's. A clone also shows the snapshot that it shares with its parent.
With symlinks as junctions it is not shown.

Source:
https://docs.netapp.com/us-en/ontap/data-protection/recover-files-single-folders-concept.html
(what clients see); snapdir-access-enabled of `volume create` (what turns it off);
https://library.netapp.com/ecmdocs/ECMP1368859/ (the common snapshot of a FlexClone and
its parent).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.lab.ontap.dataplane.trees import SNAPSHOTS, remove_tree
from provisioner.lab.ontap.records import LEFT, LIVE, Snapshot, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

ACCESS = "snapshot_directory_access_enabled"


def refresh(array: Array, volume_uuid: str) -> None:
    """Show the current snapshots, or none; safe to repeat."""
    if array.namespace.method != "bind":
        return
    with array.showing:
        volume = array.store.find(Volume, volume_uuid)
        if volume is None:
            return
        if not _is_shown(volume):
            _hide(array, volume)
            return
        # A volume that is restored just now is nowhere; it comes again with all this.
        with contextlib.suppress(FileNotFoundError):
            _show(array, volume)


def _is_shown(volume: Volume) -> bool:
    # The files of a destination of SnapMirror cannot be changed, not even by a mount
    # point; the SVM's root has no work in it.
    return (
        volume.junction_path is not None
        and volume.type == "rw"
        and not volume.is_svm_root
        and bool(volume.remembered.get(ACCESS, True))
    )


def _show(array: Array, volume: Volume) -> None:
    there, source = array.place_of(volume) / SNAPSHOTS, array.snapshot_directory(volume)
    mount_point = array.volume_path(volume) / SNAPSHOTS
    if mount_point.is_symlink() or (
        mount_point.exists() and any(mount_point.iterdir())
    ):
        return  # somebody's own
    source.mkdir(mode=0o777, exist_ok=True)
    source.chmod(0o777)
    with _times_kept(array.volume_path(volume), if_changed=not mount_point.exists()):
        array.namespace.join(source, at=there, read_only=True)
    rows = snapshots_of(array, volume)
    for name in {path.name for path in source.iterdir()} - {row.name for row in rows}:
        array.namespace.part(there / name)
        (source / name).rmdir()
    for row in rows:
        (source / row.name).mkdir(exist_ok=True)
        image = array.snapshot_path(row)
        if row.phase == LEFT:
            continue  # a move left it without files: what is shown stays
        array.namespace.join(image, at=there / row.name, read_only=True)


def snapshots_of(array: Array, volume: Volume) -> list[Snapshot]:
    """Return the snapshots of a volume; a clone shares its first with its parent.

    Source: https://library.netapp.com/ecmdocs/ECMP1368859/ (the common snapshot of a
    FlexClone and its parent).
    """
    rows = array.store.select(Snapshot, volume_uuid=volume.uuid, phase=LIVE)
    shared = array.store.find(Snapshot, volume.parent_snapshot_uuid or "")
    if shared is not None and shared.name not in {row.name for row in rows}:
        rows.insert(0, shared)
    return rows


def _hide(array: Array, volume: Volume) -> None:
    if volume.junction_path is not None:
        array.namespace.part(array.place_of(volume) / SNAPSHOTS)
    remove_tree(array.snapshot_directory(volume))
    root = array.volume_path(volume)
    mount_point = root / SNAPSHOTS
    with (
        contextlib.suppress(OSError),  # it is not there, or somebody's own
        _times_kept(root, if_changed=mount_point.exists()),
    ):
        mount_point.rmdir()


@contextlib.contextmanager
def _times_kept(root: Path, *, if_changed: bool) -> Iterator[None]:
    """Keep the times of a root: on an array .snapshot is no entry in it."""
    before = root.stat() if if_changed else None
    yield
    if before is not None:
        os.utime(root, ns=(before.st_atime_ns, before.st_mtime_ns))
