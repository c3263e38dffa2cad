"""How many files a volume may have, and how far it grows and shrinks by itself.

Source: "Set the maximum number of files allowed for a volume"; `files` and `autosize`
of `/storage/volumes` in the ONTAP REST reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

_BYTES_OF_A_FILE = 32 << 10
_LEAST_BYTES_OF_A_FILE = 4 << 10
_MOST_FILES = 2_040_109_451


def most_files(volume: Volume) -> int:
    """Return files.maximum: what was set, else one for each 32 KB."""
    given = min(volume.size_bytes // _BYTES_OF_A_FILE, _MOST_FILES)
    return int(str(volume.remembered.get("files.maximum", given)))


def inherited(parent: Volume) -> dict[str, object]:
    """Return what a clone keeps of its parent: its inode file has that size."""
    return {"files.maximum": most_files(parent)}


def check(array: Array, volume: Volume, fields: Mapping[str, Any]) -> None:
    """Refuse limits that no volume of its size can have.

    Raises: OntapError 917536, 917829, 917831.
    """
    size = fields.get("size", volume.size_bytes)
    _check_files(array, volume, fields.get("files.maximum"), size=size)
    settings = {**autosize_of(volume), **fields}
    if settings["autosize.grow_threshold"] <= settings["autosize.shrink_threshold"]:
        raise OntapError("917829", target="autosize.grow_threshold")
    if settings["autosize.minimum"] > settings["autosize.maximum"]:
        raise OntapError("917831", target="autosize.minimum")


def _check_files(
    array: Array, volume: Volume, wanted: int | None, *, size: int
) -> None:
    if wanted is None:
        return
    most = min(size // _LEAST_BYTES_OF_A_FILE, _MOST_FILES)
    if wanted > most:
        raise OntapError(
            "917536",
            target="files.maximum",
            reason=f"A volume of {size} bytes may have {most} files.",
        )
    least = array.usage.most_files_seen(volume)
    if wanted < least:
        raise OntapError(
            "917536",
            target="files.maximum",
            reason=f"The space assigned to track {least} files is never freed.",
        )


def autosize_of(volume: Volume) -> dict[str, Any]:
    """Return how the volume grows and shrinks: not at all, unless it is mirrored."""
    is_mirror = volume.type == "dp"
    given = {
        "autosize.mode": "grow_shrink" if is_mirror else "off",
        "autosize.grow_threshold": 85,
        "autosize.shrink_threshold": 80 if is_mirror else 50,
        "autosize.maximum": volume.size_bytes * 6 // 5,
        "autosize.minimum": volume.size_bytes,
    }
    return {name: volume.remembered.get(name, value) for name, value in given.items()}
