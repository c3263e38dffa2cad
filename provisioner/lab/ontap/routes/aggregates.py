"""Aggregates: ``/api/storage/aggregates``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource, collection, instance
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.http import Call, Reply, Route
from provisioner.lab.ontap.records import LIVE, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _space(array: Array, name: str) -> dict[str, object]:
    size, available = array.aggregate_bytes(name)
    used = size - available
    return {
        "size": size,
        "available": available,
        "used": used,
        "full_threshold_percent": 98,
        "physical_used": used,
        "physical_used_percent": round(100 * used / size) if size else 0,
    }


def _block_storage(array: Array, name: str) -> dict[str, object]:
    saved = array.usage.deduplicated_bytes(name)
    logical, _ = array.usage.reduction(name)
    percent = round(100 * saved / logical) if logical else 0
    return {
        **_space(array, name),
        "volume_deduplication_space_saved": saved,
        "volume_deduplication_space_saved_percent": percent,
        "data_compaction_space_saved": 0,
    }


def _saved(
    array: Array, name: str, *, with_snapshots: bool = True, with_clones: bool = True
) -> dict[str, object]:
    logical, physical = array.usage.reduction(
        name, with_snapshots=with_snapshots, with_clones=with_clones
    )
    return {
        "savings": logical - physical,
        "ratio": round(logical / physical, 2) if physical else 1.0,
        "logical_used": logical,
    }


def _view(array: Array, name: str) -> Flat:
    node = {"uuid": array.identity("node"), "name": array.config.node}
    return {
        "uuid": array.aggregate_uuid(name),
        "name": name,
        "node": node,
        "home_node": node,
        "state": "online",
        "volume_count": lambda: sum(
            array.aggregate_of(volume)["name"] == name
            for volume in array.store.select(Volume, phase=LIVE)
        ),
        "snaplock_type": "non_snaplock",
        "block_storage.primary": {
            "disk_class": "solid_state",
            "disk_type": "ssd",
            "disk_count": 1,
            "raid_size": 1,
            "raid_type": "raid0",
        },
        "block_storage.hybrid_cache": {"enabled": False, "size": 0, "disk_count": 0},
        "block_storage.mirror": {"enabled": False, "state": "unmirrored"},
        "block_storage.storage_type": "ssd",
        "data_encryption.software_encryption_enabled": False,
        "space.block_storage": lambda: _block_storage(array, name),
        "space.footprint": lambda: _space(array, name)["used"],
        "space.efficiency": lambda: _saved(array, name),
        "space.efficiency_without_snapshots": lambda: _saved(
            array, name, with_snapshots=False
        ),
        "space.efficiency_without_snapshots_flexclones": lambda: _saved(
            array, name, with_snapshots=False, with_clones=False
        ),
    }


AGGREGATES: Resource[str] = Resource(
    FieldSet(
        keys=("uuid", "name", "node"),
        standard=(
            "home_node",
            "state",
            "volume_count",
            "snaplock_type",
            "block_storage.primary",
            "block_storage.hybrid_cache",
            "block_storage.mirror",
            "block_storage.storage_type",
            "data_encryption.software_encryption_enabled",
            "space.block_storage",
        ),
        expensive=(
            "space.footprint",
            "space.efficiency",
            "space.efficiency_without_snapshots",
            "space.efficiency_without_snapshots_flexclones",
        ),
        trees=(
            "create_time",
            "block_storage",
            "data_encryption",
            "cloud_storage",
            "space",
            "metric",
            "statistics",
            "is_spare_low",
            "inode_attributes",
            "volume-count",
            "dr_home_node",
            "inactive_data_reporting",
            "sidl_enabled",
        ),
    ),
    view=_view,
    href=lambda array, name: f"/api/storage/aggregates/{array.aggregate_uuid(name)}",
    order=("name",),
)


def list_aggregates(call: Call) -> Reply:
    """List the aggregates that can hold volumes."""
    return collection(call, AGGREGATES, call.array.aggregates())


def get_aggregate(call: Call, uuid: str) -> Reply:
    """Return one aggregate."""
    for name in call.array.aggregates():
        if uuid == call.array.aggregate_uuid(name):
            return instance(call, AGGREGATES, name)
    raise OntapError("4", target="uuid")


ROUTES = (
    Route("GET", "/api/storage/aggregates", list_aggregates, fields=AGGREGATES.fields),
    Route(
        "GET", "/api/storage/aggregates/<uuid>", get_aggregate, fields=AGGREGATES.fields
    ),
)
