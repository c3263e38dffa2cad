"""Space and files of a volume.

``used`` is what its files take, including what a clone shares with its parent, and what
snapshots take beyond their reserve; ``used_by_afs`` is without the latter.
``physical_used`` is what is allocated, ``clone.inherited_physical_used`` the part of it
that the base snapshot had, so the difference is the clone's own; ``total_footprint`` is
the same for the aggregate.

Source: ``space`` and ``clone`` of ``/storage/volumes`` in the ONTAP REST reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.fields import Flat
from provisioner.lab.ontap.operations import limits
from provisioner.lab.ontap.operations.volumes import AUTODELETE
from provisioner.lab.ontap.records import Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

# Source: `volume snapshot autodelete modify` of the ONTAP command reference.
_AUTODELETE_DEFAULTS: Mapping[str, object] = {
    "enabled": False,
    "trigger": "volume",
    "commitment": "try",
    "delete_order": "oldest_first",
    "defer_delete": "user_created",
    "target_free_space": 20,
}

STANDARD = (
    "space.size",
    "space.used",
    "space.available",
    "space.afs_total",
    "space.percent_used",
)
EXPENSIVE = (
    "space.available_percent",
    "space.used_by_afs",
    "space.user_data",
    "space.physical_used",
    "space.physical_used_percent",
    "space.footprint",
    "space.volume_guarantee_footprint",
    "space.total_footprint",
    "space.local_tier_footprint",
    "space.effective_total_footprint",
    "space.over_provisioned",
    "space.logical_space.used",
    "space.logical_space.used_by_afs",
    "space.logical_space.used_percent",
    "space.logical_space.reporting",
    "space.logical_space.enforcement",
    "space.fractional_reserve",
    "space.snapshot.reserve_percent",
    "space.snapshot.reserve_size",
    "space.snapshot.used",
    "space.snapshot.autodelete_enabled",
    "space.snapshot.autodelete_trigger",
    *(f"{AUTODELETE}.{name}" for name in _AUTODELETE_DEFAULTS),
    "space.metadata",
    "files.maximum",
    "files.used",
    "files.inodefile_capacity",
    "autosize.mode",
    "autosize.grow_threshold",
    "autosize.shrink_threshold",
    "autosize.maximum",
    "autosize.minimum",
)


def view(array: Array, volume: Volume) -> Flat:
    """Return the fields; an offline volume only has those that need no filesystem."""
    size, percent = volume.size_bytes, volume.snapshot_reserve_percent
    reserve = size * percent // 100
    active = max(1, size - reserve)
    settled: dict[str, object] = {
        "space.size": size,
        "space.fractional_reserve": limits.fractional_reserve(volume),
        "space.snapshot.reserve_percent": percent,
        "space.snapshot.reserve_size": reserve,
        **_autodelete(volume),
        "files.maximum": limits.most_files(volume),
        "space.logical_space.reporting": False,
        "space.logical_space.enforcement": False,
    }

    def used() -> int:
        return array.usage.taken_bytes(volume)

    def files() -> int:
        return array.usage.used_bytes(volume)

    def own() -> int:
        return array.usage.own_bytes(volume)

    def physical() -> int:
        return own() + array.usage.inherited_bytes(volume)

    def held_back() -> int:
        return max(0, size - files()) if volume.guarantee == "volume" else 0

    def available() -> int:
        left = max(0, size - reserve - used())
        if volume.guarantee == "volume":
            return left
        return min(left, array.aggregate_bytes(volume.aggregate)[1])

    if volume.state != "online":
        return {**settled, "space.footprint": own}
    return {
        **settled,
        "space.used": used,
        "space.available": available,
        "space.available_percent": lambda: 100 * available() // active,
        "space.afs_total": size - reserve,
        "space.percent_used": lambda: 100 * used() // active,
        "space.used_by_afs": files,
        "space.user_data": files,
        "space.physical_used": physical,
        "space.physical_used_percent": lambda: 100 * physical() // max(1, size),
        "space.footprint": own,
        "space.volume_guarantee_footprint": held_back,
        "space.total_footprint": lambda: own() + held_back(),
        "space.local_tier_footprint": lambda: own() + held_back(),
        "space.effective_total_footprint": lambda: own() + held_back(),
        "space.over_provisioned": lambda: max(0, size - reserve - used() - available()),
        "space.snapshot.used": lambda: array.usage.only_in_snapshots_bytes(volume),
        "space.logical_space.used": files,
        "space.logical_space.used_by_afs": files,
        "space.logical_space.used_percent": lambda: 100 * files() // active,
        "space.metadata": 0,
        "files.used": lambda: array.usage.used_files(volume),
        "files.inodefile_capacity": lambda: array.usage.most_files_seen(volume),
        **limits.autosize_of(array, volume),
    }


def _autodelete(volume: Volume) -> dict[str, object]:
    """Return what a full volume does with its snapshots."""
    kept = {
        name: volume.remembered.get(f"{AUTODELETE}.{name}", default)
        for name, default in _AUTODELETE_DEFAULTS.items()
    }
    return {
        **{f"{AUTODELETE}.{name}": value for name, value in kept.items()},
        f"{AUTODELETE}_enabled": kept["enabled"],
        f"{AUTODELETE}_trigger": kept["trigger"],
    }
