"""Command line output for monitoring: ``GET /api/private/cli/…``.

Pollers read here what REST lacks. Records have the column names of the ``show``
commands.

Source: the ONTAP command reference (``volume show``, ``volume show-footprint``,
``vserver show``, ``network interface show``, …), and the columns that the templates of
NetApp's Harvest request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from provisioner.lab.ontap.conventions.collection import Resource, collection
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.conventions.values import Kind, text
from provisioner.lab.ontap.http import Call, Handler, Reply, Route
from provisioner.lab.ontap.operations import snapshots
from provisioner.lab.ontap.records import (
    LIVE,
    QosPolicy,
    Relationship,
    Snapshot,
    Svm,
    Volume,
)
from provisioner.lab.ontap.routes.command_line_columns import (
    EMPTY,
    OF_AUTODELETE,
    OF_EFFICIENCY,
    OF_FOOTPRINTS,
    OF_RELATIONSHIPS,
    OF_VOLUMES,
    WAYS_OF_SAVING,
)
from provisioner.lab.ontap.routes.qos_policies import QOS
from provisioner.lab.ontap.routes.snapmirror import RELATIONSHIPS
from provisioner.lab.ontap.routes.volume_view import VOLUMES

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

T = TypeVar("T")

_BASE = "/api/private/cli"
# They say how the command line is to be used, and select nothing.
_STEERING: dict[str, Kind] = {"privilege_level": text, "expand": text}


def _named(array: Array, volume: Volume) -> dict[str, object]:
    return {"vserver": array.svm(volume.svm_uuid).name, "volume": volume.name}


def _columns(flat: Flat, columns: dict[str, str]) -> dict[str, object]:
    """Return columns with the values of REST's fields, computed when requested."""
    return {column: flat.get(field) for column, field in columns.items()}


def _volume(array: Array, volume: Volume) -> Flat:
    parent = array.store.find(Volume, volume.parent_uuid)
    return {
        **_named(array, volume),
        **_columns(VOLUMES.view(array, volume), OF_VOLUMES),
        "aggr_list": [array.aggregate_of(volume)["name"]],
        "nodes": [array.config.node],
        "clone_parent_name": parent and parent.name,
        "clone_parent_vserver": parent and array.svm(parent.svm_uuid).name,
        "is_constituent": False,
        "is_sis_volume": bool(volume.efficiency),
        "node_root": False,
        "overwrite_reserve": 0,
        "overwrite_reserve_used": 0,
        "snaplock_type": "non_snaplock",
        "space_mgmt_try_first": "volume_grow",
        "type": volume.type.upper(),
        "volume_style_extended": "flexvol",
    }


def _part(columns: dict[str, str]) -> Callable[[Array, Volume], Flat]:
    return lambda array, volume: {
        **_named(array, volume),
        **_columns(VOLUMES.view(array, volume), columns),
    }


def _efficiency(array: Array, volume: Volume) -> Flat:
    flat = VOLUMES.view(array, volume)
    return {
        **_named(array, volume),
        **_columns(flat, OF_EFFICIENCY),
        **{
            column: flat[f"efficiency.{field}"] in (word, "both")
            for column, (field, word) in WAYS_OF_SAVING.items()
        },
    }


def _snapshot(array: Array, snapshot: Snapshot) -> Flat:
    volume = array.store.get(Volume, snapshot.volume_uuid)
    return {
        **_named(array, volume),
        "snapshot": snapshot.name,
        "owners": lambda: snapshots.owners_of(array, snapshot) or None,
        "create_time": snapshot.create_time,
        "comment": snapshot.comment,
        "snapmirror_label": snapshot.snapmirror_label,
        "instance_uuid": snapshot.uuid,
        "size": snapshot.logical_bytes - snapshot.saved_bytes,
        "afs_used": snapshot.logical_bytes,
    }


def _svm(array: Array, svm: Svm) -> Flat:
    return {
        "vserver": svm.name,
        "uuid": svm.uuid,
        "type": "data",
        "subtype": "default",
        "admin_state": "running",
        "operational_state": "running",
        "is_space_enforcement_logical": False,
        "is_space_reporting_logical": False,
        "anti_ransomware_default_volume_state": "disabled",
    }


def _interface(array: Array, svm: Svm) -> Flat:
    return {
        "vserver": svm.name,
        "lif": "nfs_lif1",
        "address": array.config.data_lif,
        "data_protocol": ["nfs"],
        "curr_node": array.config.node,
        "home_node": array.config.node,
        "is_home": True,
        "status_oper": "up",
    }


def _relationship(array: Array, row: Relationship) -> Flat:
    flat = RELATIONSHIPS.view(array, row)
    latest = flat["transfer"] if isinstance(flat["transfer"], dict) else {}
    source_svm, _, source = row.source_path.partition(":")
    svm, _, volume = row.destination_path.partition(":")
    return {
        **_columns(flat, OF_RELATIONSHIPS),
        "destination_path": row.destination_path,
        "destination_vserver": svm,
        "destination_volume": volume,
        "destination_volume_node": array.config.node,
        "source_path": row.source_path,
        "source_vserver": source_svm,
        "source_volume": source,
        "last_transfer_duration": latest.get("total_duration"),
        "last_transfer_end_timestamp": latest.get("end_time"),
        "last_transfer_size": latest.get("bytes_transferred"),
        "newest_snapshot_timestamp": row.exported_time,
        "relationship_type": "XDP",
        "relationship_group_type": "flexvol",
        "policy_type": "async-mirror",
        "schedule": row.transfer_schedule,
        "state": row.state.replace("_", "-"),
        "status": "idle" if row.transfer_uuid is None else "transferring",
        "unhealthy_reason": row.unhealthy_reason,
    }


def _node(array: Array, _row: None) -> Flat:
    return {
        "node": array.config.node,
        "health": True,
        "uptime": array.uptime_seconds(),
        "model": "LAB",
        "vendor": "NetApp",
        "max_node_vvols": array.settings.max_volumes_per_svm,
        "max_vol_size": array.settings.max_volume_bytes,
    }


def _aggregate(array: Array, name: str) -> Flat:
    return {
        "aggregate": name,
        "uuid": array.aggregate_uuid(name),
        "node": array.config.node,
        "root": False,
        "state": "online",
    }


def _adaptive_policy(array: Array, policy: QosPolicy) -> Flat:
    flat = QOS.view(array, policy)
    bounds = flat["adaptive"]
    assert isinstance(bounds, dict)
    return {
        "policy_group": policy.name,
        "vserver": flat["svm.name"],
        "uuid": flat["uuid"],
        "num_workloads": flat["object_count"],
        "absolute_min_iops": f"{bounds['absolute_min_iops']}IOPS",
        "expected_iops": f"{bounds['expected_iops']}IOPS/TB",
        "expected_iops_allocation": bounds["expected_iops_allocation"],
        "peak_iops": f"{bounds['peak_iops']}IOPS/TB",
        "peak_iops_allocation": bounds["peak_iops_allocation"],
    }


def _volumes(array: Array) -> Iterable[Volume]:
    return array.store.select(Volume, phase=LIVE)


def _online_volumes(array: Array) -> Iterable[Volume]:
    return (row for row in _volumes(array) if row.state == "online")


def _svms(array: Array) -> Iterable[Svm]:
    return array.store.select(Svm)


def _relationships(array: Array) -> Iterable[Relationship]:
    return array.store.select(Relationship)


def _snapshots(array: Array) -> Iterable[Snapshot]:
    visible = {row.uuid for row in _volumes(array)}
    rows = array.store.select(Snapshot, phase=LIVE)
    return (row for row in rows if row.volume_uuid in visible)


def _one(array: Array) -> Iterable[None]:
    return [None]


def _show(
    path: str,
    keys: tuple[str, ...],
    columns: Iterable[str],
    *,
    view: Callable[[Array, T], Flat],
    rows: Callable[[Array], Iterable[T]],
) -> Route:
    """Return the route of one ``show`` command."""
    shown = tuple(name for name in columns if name not in keys)
    resource: Resource[T] = Resource(
        FieldSet(keys=keys, standard=shown, trees=("tags", *EMPTY.get(path, ()))),
        view=view,
        href=lambda array, row: f"{_BASE}/{path}",
        order=keys,
    )
    return Route(
        "GET",
        f"{_BASE}/{path}",
        _lister(resource, rows),
        fields=resource.fields,
        query=_STEERING,
    )


def _lister(resource: Resource[T], rows: Callable[[Array], Iterable[T]]) -> Handler:
    def show(call: Call) -> Reply:
        """Show the rows as the command line does."""
        for name in _STEERING:
            call.filters.pop(name, None)
        return collection(call, resource, rows(call.array))

    return show


_VOLUME_KEYS = ("vserver", "volume")
_VOLUME_COLUMNS = (
    *OF_VOLUMES,
    *("aggr_list", "nodes", "clone_parent_name", "clone_parent_vserver"),
    *("is_constituent", "is_sis_volume", "node_root", "snaplock_type"),
    *("overwrite_reserve", "overwrite_reserve_used"),
    *("space_mgmt_try_first", "type", "volume_style_extended"),
)
_SNAPSHOT_KEYS = ("vserver", "volume", "snapshot")
_SNAPSHOT_COLUMNS = (
    *("owners", "create_time", "comment", "snapmirror_label"),
    *("instance_uuid", "size", "afs_used"),
)
_SVM_COLUMNS = (
    *("uuid", "type", "subtype", "admin_state", "operational_state"),
    *("is_space_enforcement_logical", "is_space_reporting_logical"),
    "anti_ransomware_default_volume_state",
)
_INTERFACE_COLUMNS = (
    *("address", "data_protocol", "curr_node", "home_node", "is_home", "status_oper"),
)
_RELATIONSHIP_COLUMNS = (
    *OF_RELATIONSHIPS,
    *("destination_vserver", "destination_volume", "destination_volume_node"),
    *("source_path", "source_vserver", "source_volume"),
    *("last_transfer_duration", "last_transfer_end_timestamp", "last_transfer_size"),
    "newest_snapshot_timestamp",
    *("relationship_type", "relationship_group_type", "policy_type"),
    *("schedule", "status", "unhealthy_reason"),
)
_ADAPTIVE_COLUMNS = (
    *("vserver", "uuid", "num_workloads", "absolute_min_iops", "expected_iops"),
    *("expected_iops_allocation", "peak_iops", "peak_iops_allocation"),
)
_NODE_COLUMNS = (
    *("health", "uptime", "model", "vendor", "max_node_vvols", "max_vol_size"),
)

ROUTES = (
    _show("volume", _VOLUME_KEYS, _VOLUME_COLUMNS, view=_volume, rows=_volumes),
    *(
        _show(path, _VOLUME_KEYS, columns, view=_part(columns), rows=_online_volumes)
        for path, columns in (
            ("volume/footprint", OF_FOOTPRINTS),
            ("volume/snapshot/autodelete", OF_AUTODELETE),
        )
    ),
    _show(
        "volume/efficiency",
        _VOLUME_KEYS,
        (*OF_EFFICIENCY, *WAYS_OF_SAVING),
        view=_efficiency,
        rows=_online_volumes,
    ),
    _show(
        "qos/adaptive-policy-group",
        ("policy_group",),
        _ADAPTIVE_COLUMNS,
        view=_adaptive_policy,
        rows=lambda array: [
            each for each in array.store.select(QosPolicy) if each.adaptive
        ],
    ),
    *(
        _show(path, _SNAPSHOT_KEYS, _SNAPSHOT_COLUMNS, view=_snapshot, rows=_snapshots)
        for path in ("snapshot", "volume/snapshot")
    ),
    _show("vserver", ("vserver",), _SVM_COLUMNS, view=_svm, rows=_svms),
    _show(
        "network/interface",
        ("vserver", "lif"),
        _INTERFACE_COLUMNS,
        view=_interface,
        rows=_svms,
    ),
    _show(
        "snapmirror",
        ("destination_path",),
        _RELATIONSHIP_COLUMNS,
        view=_relationship,
        rows=_relationships,
    ),
    _show("node", ("node",), _NODE_COLUMNS, view=_node, rows=_one),
    _show(
        "aggr",
        ("aggregate",),
        ("uuid", "node", "root", "state"),
        view=_aggregate,
        rows=lambda array: array.aggregates(),
    ),
)
