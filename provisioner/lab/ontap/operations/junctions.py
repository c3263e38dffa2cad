"""Junction paths: which are possible, and mounting and unmounting volumes."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.operations import snapshot_directories
from provisioner.lab.ontap.records import LIVE, Svm, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_FORBIDDEN = re.compile(r'[*#"><|?\\\x00-\x1f]')


def check_junction_path(path: str) -> None:
    """Refuse an invalid junction path.

    Raises: OntapError 918252.
    """
    reason = None
    if not path.startswith("/") or path == "/":
        reason = "it must begin with / and name something"
    elif path.endswith("/"):
        reason = "it must not end with /"
    elif len(path) > 255:
        reason = "it is longer than 255 characters"
    elif _FORBIDDEN.search(path):
        reason = "it contains a character that is not allowed"
    elif any(part in ("", ".", "..", ".snapshot") for part in path[1:].split("/")):
        reason = "it has a component that is not allowed"
    if reason:
        raise OntapError("918252", target="nas.path", reason=reason)


def check_junction_free(
    array: Array, path: str, *, svm_uuid: str, volume_uuid: str | None = None
) -> Volume:
    """Return the volume that contains `path`.

    Raises: OntapError 918252 if the path is taken or its parent does not exist.
    """
    key = path.casefold()
    for row in array.store.select(Volume, svm_uuid=svm_uuid, junction_key=key):
        if row.uuid != volume_uuid:
            raise OntapError(
                "918252", target="nas.path", reason=f"junction path {path} is in use"
            )
    parent = _parent_of(array, key, svm_uuid=svm_uuid)
    if parent.uuid == volume_uuid:
        raise OntapError(
            "918252", target="nas.path", reason="a volume cannot be inside itself"
        )
    _check_parent_directory(array, parent, path=path, svm_uuid=svm_uuid)
    return parent


def _parent_of(array: Array, key: str, *, svm_uuid: str) -> Volume:
    for ancestor in PurePosixPath(key).parents:
        for row in array.store.select(
            Volume, svm_uuid=svm_uuid, junction_key=str(ancestor), phase=LIVE
        ):
            return row
    raise OntapError("918252", target="nas.path", reason="no volume is mounted above")


def _check_parent_directory(
    array: Array, parent: Volume, *, path: str, svm_uuid: str
) -> None:
    """Walk to the junction's directory without following a symlink."""
    assert parent.junction_path is not None
    inside = PurePosixPath(path[len(parent.junction_path) :].lstrip("/"))
    here = array.volume_path(parent)
    for part in inside.parts[:-1]:
        here = here / part
        try:
            is_directory = stat.S_ISDIR(here.lstat().st_mode)
        except OSError:
            is_directory = False
        if not is_directory:
            raise OntapError(
                "918252",
                target="nas.path",
                reason=f"the parent directory of {path} does not exist",
            )


def has_nested(array: Array, volume: Volume) -> bool:
    """Return whether other volumes are mounted inside this one."""
    return array.store.count(Volume, junction_parent_uuid=volume.uuid) > 0


def mount(array: Array, volume_uuid: str, *, path: str) -> None:
    """Mount a volume at the path, moving it if it is mounted elsewhere.

    Raises: OntapError 918252 if the path is impossible, 917536 if the filesystem
    refuses.
    """
    volume = array.store.get(Volume, volume_uuid)
    if volume.junction_path not in (None, path):
        unmount(array, volume_uuid)
        volume = array.store.get(Volume, volume_uuid)
    with array.store.transaction():
        parent = check_junction_free(
            array, path, svm_uuid=volume.svm_uuid, volume_uuid=volume.uuid
        )
        mounted = replace(volume, junction_path=path, junction_parent_uuid=parent.uuid)
        array.store.save(mounted)
    try:
        array.namespace.join(array.volume_path(volume), at=array.place_of(mounted))
        snapshot_directories.refresh(array, volume.uuid)
    except OSError as error:
        array.store.save(
            replace(mounted, junction_path=None, junction_parent_uuid=None)
        )
        reason = f"The junction {path} cannot be made: {error.strerror}."
        raise OntapError("917536", target="nas.path", reason=reason) from error


def unmount(array: Array, volume_uuid: str) -> None:
    """Remove the volume from the namespace; do nothing if it is not mounted.

    Raises: OntapError 917536 while other volumes are mounted inside it.
    """
    volume = array.store.get(Volume, volume_uuid)
    if volume.junction_path is None:
        return
    if has_nested(array, volume):
        reason = f"Other volumes are mounted inside {volume.junction_path}."
        raise OntapError("917536", target="nas.path", reason=reason)
    array.namespace.part(array.place_of(volume))
    array.store.save(replace(volume, junction_path=None, junction_parent_uuid=None))
    snapshot_directories.refresh(array, volume.uuid)


def ancestors_of(array: Array, path: str, *, svm: str) -> list[Volume]:
    """Return the mounted volumes on the way from the root down to `path`."""
    found = array.store.select(Svm, name=svm)
    if not found:
        return []
    way = []
    for row in array.store.select(Volume, svm_uuid=found[0].uuid, phase=LIVE):
        junction = row.junction_path
        if junction and (path + "/").startswith(junction.rstrip("/") + "/"):
            way.append(row)
    return sorted(way, key=lambda row: len(row.junction_path or ""))
