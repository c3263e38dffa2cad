"""The fields of a volume, their values, and which of them are expensive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.lab.ontap.conventions.collection import Resource
from provisioner.lab.ontap.conventions.fields import FieldSet, Flat
from provisioner.lab.ontap.operations import (
    efficiency,
    moves,
    qos_policies,
    quota_rules,
    snapshot_policies,
)
from provisioner.lab.ontap.operations.volumes import policy_of
from provisioner.lab.ontap.records import LIVE, Destination, Snapshot, Svm, Volume
from provisioner.lab.ontap.routes import volume_space

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array


def _view(array: Array, volume: Volume) -> Flat:
    svm = array.svm(volume.svm_uuid)
    return {
        "uuid": volume.uuid,
        "name": volume.name,
        "comment": volume.comment,
        "create_time": volume.create_time,
        "language": "c.utf_8" if volume.state == "online" else None,
        "size": volume.size_bytes,
        "state": volume.state,
        "style": "flexvol",
        "type": volume.type,
        "msid": volume.msid,
        "svm.name": svm.name,
        "svm.uuid": svm.uuid,
        "svm._links": {"self": {"href": f"/api/svm/svms/{svm.uuid}"}},
        "aggregates": [array.aggregate_of(volume)],
        "snapshot_count": lambda: array.store.count(
            Snapshot, volume_uuid=volume.uuid, phase=LIVE
        ),
        "snapshot_policy.name": volume.snapshot_policy,
        "snapshot_policy.uuid": lambda: _snapshot_policy_uuid(array, volume),
        "status": None
        if volume.state == "online"
        else [f"Volume {volume.name} is not {'online'}."],
        "is_svm_root": volume.is_svm_root,
        "snapmirror.is_protected": lambda: bool(
            array.store.count(Destination, source_uuid=volume.uuid)
        ),
        "flexcache_endpoint_type": "none",
        "access_time_enabled": True,
        "snapshot_directory_access_enabled": True,
        "nas.export_policy.name": lambda: policy_of(array, volume).name,
        "nas.export_policy.id": volume.export_policy_id,
        "nas.path": volume.junction_path,
        "nas.uid": volume.uid,
        "nas.gid": volume.gid,
        "nas.unix_permissions": volume.unix_permissions,
        "nas.security_style": volume.security_style,
        "nas.junction_parent": lambda: _junction_parent(array, volume),
        "guarantee.type": volume.guarantee,
        "guarantee.honored": True,
        "analytics.state": "off",
        "tiering.policy": "none",
        "encryption.enabled": False,
        "quota.state": "on" if quota_rules.are_on(volume) else "off",
        **efficiency.view(array, volume),
        **moves.view(array, volume),
        **_clone(array, volume),
        **{k: v for k, v in volume.remembered.items() if k != "quota.enabled"},
        **qos_policies.of_volume(array, volume.remembered),
        **volume_space.view(array, volume),
    }


def _snapshot_policy_uuid(array: Array, volume: Volume) -> str | None:
    policy = snapshot_policies.find(
        array, name=volume.snapshot_policy, svm_uuid=volume.svm_uuid
    )
    return policy.uuid if policy is not None else None


def _junction_parent(array: Array, volume: Volume) -> object:
    return _named(array.store.find(Volume, volume.junction_parent_uuid))


def _clone(array: Array, volume: Volume) -> Flat:
    view: dict[str, object] = {
        "clone.is_flexclone": volume.parent_uuid is not None,
        "clone.has_flexclone": lambda: bool(
            array.store.count(Volume, parent_uuid=volume.uuid)
        ),
    }
    if volume.parent_uuid is None:
        return view
    return {
        **view,
        "clone.parent_volume": lambda: _named(
            array.store.find(Volume, volume.parent_uuid)
        ),
        "clone.parent_svm": lambda: _named(_parent_svm(array, volume)),
        "clone.parent_snapshot": lambda: _named(
            array.store.find(Snapshot, volume.parent_snapshot_uuid)
        ),
        "clone.split_initiated": volume.is_splitting,
        "clone.split_complete_percent": volume.split_percent
        if volume.is_splitting
        else None,
        "clone.split_estimate": lambda: array.usage.inherited_bytes(volume),
        "clone.inherited_physical_used": lambda: array.usage.inherited_bytes(volume),
        "clone.inherited_savings": volume.inherited_savings_bytes,
    }


def _parent_svm(array: Array, volume: Volume) -> Svm | None:
    parent = array.store.find(Volume, volume.parent_uuid)
    return None if parent is None else array.svm(parent.svm_uuid)


def _named(row: Volume | Svm | Snapshot | None) -> object:
    return None if row is None else {"name": row.name, "uuid": row.uuid}


VOLUMES: Resource[Volume] = Resource(
    FieldSet(
        keys=("uuid", "name"),
        standard=(
            "comment",
            "create_time",
            "language",
            "size",
            "state",
            "style",
            "type",
            "msid",
            "svm.name",
            "svm.uuid",
            "svm._links",
            "aggregates",
            "snapshot_count",
            "snapshot_policy.name",
            "snapshot_policy.uuid",
            "status",
            "snapmirror.is_protected",
            "clone.is_flexclone",
            "clone.has_flexclone",
            "nas.export_policy.name",
            "analytics.state",
            "tiering.policy",
            *volume_space.STANDARD,
        ),
        expensive=(
            "clone.parent_volume",
            "clone.parent_svm",
            "clone.parent_snapshot",
            "clone.split_initiated",
            "clone.split_complete_percent",
            "clone.split_estimate",
            "clone.inherited_physical_used",
            "clone.inherited_savings",
            "nas.path",
            "nas.uid",
            "nas.gid",
            "nas.unix_permissions",
            "nas.security_style",
            "nas.junction_parent",
            "nas.export_policy.id",
            "guarantee.type",
            "guarantee.honored",
            "encryption.enabled",
            "quota.state",
            "is_svm_root",
            "access_time_enabled",
            "snapshot_directory_access_enabled",
            "flexcache_endpoint_type",
            *volume_space.EXPENSIVE,
            "efficiency.state",
            "efficiency.dedupe",
            "efficiency.compression",
            "efficiency.compaction",
            "efficiency.cross_volume_dedupe",
            "efficiency.op_state",
            "efficiency.progress",
            "efficiency.policy.name",
            "efficiency.schedule",
            "efficiency.type",
            "efficiency.volume_path",
            "efficiency.has_savings",
            "efficiency.ratio",
            "efficiency.scanner.state",
            "efficiency.last_op_begin",
            "efficiency.last_op_end",
            "efficiency.last_op_size",
            "efficiency.last_op_state",
            "efficiency.last_op_err",
            "efficiency.space_savings.dedupe",
            "efficiency.space_savings.dedupe_percent",
            "efficiency.space_savings.dedupe_sharing",
            "efficiency.space_savings.compression",
            "efficiency.space_savings.compression_percent",
            "efficiency.space_savings.total",
            "efficiency.space_savings.total_percent",
        ),
        trees=(
            "tiering",
            "qos",
            "quota",
            "snaplock",
            "encryption",
            "efficiency",
            "space",
            "analytics",
            "activity_tracking",
            "anti_ransomware",
            "application",
            "asynchronous_directory_delete",
            "cloud_retrieval_policy",
            "cloud_write_enabled",
            "consistency_group",
            "constituents",
            "constituent_count",
            "error_state",
            "granular_data",
            "granular_data_mode",
            "is_constituent",
            "is_object_store",
            "is_large_dir_enabled",
            "idcs_scanner",
            "max_dir_size",
            "metric",
            "movement",
            "queue_for_encryption",
            "rebalancing",
            "restore_to",
            "scheduled_snapshot_naming_scheme",
            "snapshot_locking_enabled",
            "snapmirror",
            "statistics",
            "status",
            "tags",
            "_tags",
            "use_mirrored_aggregates",
            "validate_only",
            "vmdisks",
            "convert_unicode",
            "aggressive_readahead_mode",
            "clone",
            "nas",
            "guarantee",
            "snapshot_policy",
            "svm",
        ),
    ),
    view=_view,
    href=lambda array, volume: f"/api/storage/volumes/{volume.uuid}",
    order=("svm.name", "name", "uuid"),
)
