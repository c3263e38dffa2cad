"""The least size of volumes, their inode limit, fractional reserve and autosize.

Source: "Set the maximum number of files allowed for a volume"; `files`, `autosize` and
`space` of `/storage/volumes` in the ONTAP REST reference; `volume autosize` of the
command reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.records import Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

FRACTIONAL_RESERVE = "space.fractional_reserve"
_BYTES_OF_A_FILE = 32 << 10
_LEAST_BYTES_OF_A_FILE = 4 << 10
_MOST_FILES = 2_040_109_451


def most_files(volume: Volume) -> int:
    """Return files.maximum: the set value, else one per 32 KB."""
    given = min(volume.size_bytes // _BYTES_OF_A_FILE, _MOST_FILES)
    return int(str(volume.remembered.get("files.maximum", given)))


def least_bytes_for_files(volume: Volume) -> int:
    """Return the size that a volume needs for its inode limit."""
    return int(str(volume.remembered.get("files.maximum", 0))) * _LEAST_BYTES_OF_A_FILE


def fractional_reserve(volume: Volume) -> int:
    """Return space.fractional_reserve: the set value, else what the guarantee brings.

    Source: "Considerations for setting fractional reserve": 100 with guarantee volume.
    """
    given = 100 if volume.guarantee == "volume" else 0
    return int(str(volume.remembered.get(FRACTIONAL_RESERVE, given)))


def inherited(parent: Volume) -> dict[str, object]:
    """Return what a clone keeps of its parent: its inode file has that size."""
    kept = {"files.maximum": most_files(parent)}
    if FRACTIONAL_RESERVE in parent.remembered:
        kept[FRACTIONAL_RESERVE] = fractional_reserve(parent)
    return {**kept}


def check_holds(array: Array, volume: Volume, *, size: int) -> None:
    """Refuse to shrink a volume below what is in it.

    NetApp documents no code for it, so it comes as any failure of a job.

    Source: ONTAP's sentence, which clients of its REST API match.

    Raises: OntapError 917536.
    """
    if size >= volume.size_bytes or volume.state != "online":
        return
    least = array.usage.used_bytes(volume)
    if size < least:
        raise OntapError(
            "917536",
            target="size",
            reason="Selected volume size is too small to hold the current volume "
            f"data. New volume size must be at least {least}B to hold the current "
            "volume data.",
        )


def check(array: Array, volume: Volume, fields: Mapping[str, Any]) -> None:
    """Refuse limits that are impossible for the volume's size.

    Raises: OntapError 2, 917536, 917829, 917831, 918521.
    """
    reserve = fields.get(FRACTIONAL_RESERVE, 0)
    if reserve not in (0, 100):
        field = FRACTIONAL_RESERVE
        raise OntapError("2", target=field, field=field, value=reserve)
    size = fields.get("size", volume.size_bytes)
    _check_files(array, volume, fields.get("files.maximum"), size=size)
    largest = array.settings.max_volume_bytes
    if fields.get("autosize.maximum", 0) > largest:
        raise OntapError("918521", target="autosize.maximum", largest=largest)
    settings = {**autosize_of(array, replace(volume, size_bytes=size)), **fields}
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


def autosize_of(array: Array, volume: Volume) -> dict[str, Any]:
    """Return the autosize settings: off by default, unless the volume is mirrored.

    A maximum that a larger size overtook returns to its default.
    """
    is_mirror = volume.type == "dp"
    usual = min(volume.size_bytes * 6 // 5, array.settings.max_volume_bytes)
    maximum = int(str(volume.remembered.get("autosize.maximum", usual)))
    given = {
        "autosize.mode": "grow_shrink" if is_mirror else "off",
        "autosize.grow_threshold": 85,
        "autosize.shrink_threshold": 80 if is_mirror else 50,
        "autosize.minimum": volume.size_bytes,
    }
    return {
        **{name: volume.remembered.get(name, value) for name, value in given.items()},
        "autosize.maximum": maximum if maximum >= volume.size_bytes else usual,
    }
