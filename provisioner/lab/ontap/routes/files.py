"""Files of a volume, read-only: ``/api/storage/volumes/{uuid}/files/{path}``.

Owners can be read without a mount. Changing files, reading data and analytics are not
part of the lab.

Source: ``/storage/volumes/{volume.uuid}/files`` in the ONTAP REST reference.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.records import Volume
from provisioner.lab.ontap.routes.volumes import find_volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFBLK: "blockdev",
    stat.S_IFCHR: "chardev",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "fifo",
}


@dataclass(frozen=True)
class _Entry:
    """One entry of a directory; `directory` is its path, "" for the root."""

    volume: Volume
    directory: str
    name: str
    status: os.stat_result


def _view(array: Array, entry: _Entry) -> Flat:
    status = entry.status
    return {
        "path": entry.directory,
        "name": entry.name,
        "type": _TYPES.get(stat.S_IFMT(status.st_mode), "unknown"),
        "owner_id": status.st_uid,
        "group_id": status.st_gid,
        "unix_permissions": int(f"{stat.S_IMODE(status.st_mode):o}"),
        "size": status.st_size,
        "hard_links_count": status.st_nlink,
        "inode_number": status.st_ino,
    }


def _href(array: Array, entry: _Entry) -> str:
    path = "/".join(filter(None, (entry.directory, entry.name)))
    encoded = quote(path, safe="", errors="replace").replace(".", "%2E")
    return f"/api/storage/volumes/{entry.volume.uuid}/files/{encoded}"


FILES: Resource[_Entry] = Resource(
    FieldSet(
        keys=("path", "name"),
        standard=(
            *("type", "owner_id", "group_id", "unix_permissions", "size"),
            *("hard_links_count", "inode_number"),
        ),
    ),
    view=_view,
    href=_href,
    order=("name",),
)


def list_files(call: Call, volume_uuid: str, path: str = "") -> Reply:
    """List a directory, with "." and ".."; with return_metadata only one entry."""
    volume = find_volume(call, volume_uuid)
    root = call.array.volume_path(volume)
    place = _inside(root, path)
    if call.flag("return_metadata", default=False):
        parent, _, name = path.rpartition("/")
        return instance(call, FILES, _Entry(volume, parent, name, os.lstat(place)))
    if place.is_symlink() or not place.is_dir():
        raise OntapError("4", target="path")
    above = place if place == root else place.parent
    entries = [_Entry(volume, path, ".", os.lstat(place))]
    entries.append(_Entry(volume, path, "..", os.lstat(above)))
    with os.scandir(place) as listing:
        entries += [
            _Entry(volume, path, each.name, each.stat(follow_symlinks=False))
            for each in listing
        ]
    return collection(call, FILES, entries)


def _inside(root: Path, path: str) -> Path:
    """Return the path of an entry, following no link. Raises: OntapError 4."""
    place = root
    for name in filter(None, path.split("/")):
        place = place / name
        if name == ".." or place.parent.is_symlink() or not os.path.lexists(place):
            raise OntapError("4", target="path")
    return place


ROUTES = (
    Route(
        "GET",
        "/api/storage/volumes/<volume_uuid>/files",
        list_files,
        fields=FILES.fields,
    ),
    Route(
        "GET",
        "/api/storage/volumes/<volume_uuid>/files/<path:path>",
        list_files,
        fields=FILES.fields,
    ),
)
