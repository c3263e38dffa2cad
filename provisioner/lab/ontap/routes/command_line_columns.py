"""Columns of ``show`` commands that are REST fields elsewhere.

Source: the ONTAP command reference, and the columns that the templates of NetApp's
Harvest request.
"""

from __future__ import annotations

# A column, and the field of REST that it shows.
OF_VOLUMES = {
    "autosize_mode": "autosize.mode",
    "autosize_grow_threshold_percent": "autosize.grow_threshold",
    "autosize_shrink_threshold_percent": "autosize.shrink_threshold",
    "available": "space.available",
    "clone_volume": "clone.is_flexclone",
    "dedupe_space_saved": "efficiency.space_savings.dedupe",
    "dedupe_space_saved_percent": "efficiency.space_savings.dedupe_percent",
    "compression_space_saved": "efficiency.space_savings.compression",
    "compression_space_saved_percent": "efficiency.space_savings.compression_percent",
    "files": "files.maximum",
    "files_used": "files.used",
    "filesystem_size": "space.size",
    "instance_uuid": "uuid",
    "is_encrypted": "encryption.enabled",
    "is_space_enforcement_logical": "space.logical_space.enforcement",
    "is_space_reporting_logical": "space.logical_space.reporting",
    "junction_path": "nas.path",
    "logical_used": "space.logical_space.used",
    "logical_used_by_afs": "space.logical_space.used_by_afs",
    "logical_used_percent": "space.logical_space.used_percent",
    "max_autosize": "autosize.maximum",
    "min_autosize": "autosize.minimum",
    "percent_snapshot_space": "space.snapshot.reserve_percent",
    "percent_used": "space.percent_used",
    "physical_used": "space.physical_used",
    "physical_used_percent": "space.physical_used_percent",
    "policy": "nas.export_policy.name",
    "sis_space_saved": "efficiency.space_savings.total",
    "sis_space_saved_percent": "efficiency.space_savings.total_percent",
    "size": "size",
    "snapshot_count": "snapshot_count",
    "snapshot_policy": "snapshot_policy.name",
    "snapshot_reserve_size": "space.snapshot.reserve_size",
    "space_guarantee": "guarantee.type",
    "state": "state",
    "tiering_policy": "tiering.policy",
    "total": "space.afs_total",
    "used": "space.used",
    "virtual_used": "space.physical_used",
    "virtual_used_percent": "space.physical_used_percent",
    "vsroot": "is_svm_root",
}
OF_FOOTPRINTS = {
    "total_footprint": "space.total_footprint",
    "delayed_free_footprint": "space.delayed_free_footprint",
    "flexvol_metadata_footprint": "space.metadata",
    "total_metadata_footprint": "space.metadata",
    "volume_blocks_footprint_bin0": "space.footprint",
    "volume_guarantee_footprint": "space.volume_guarantee_footprint",
}
OF_EFFICIENCY = {
    "state": "efficiency.state",
    "policy": "efficiency.policy.name",
    "op_status": "efficiency.op_state",
    "progress": "efficiency.progress",
    "last_op_begin": "efficiency.last_op_begin",
    "last_op_end": "efficiency.last_op_end",
    "last_op_size": "efficiency.last_op_size",
    "last_op_state": "efficiency.last_op_state",
    "path": "efficiency.volume_path",
    "schedule": "efficiency.schedule",
    "type": "efficiency.type",
}
# Columns that are yes or no, with the field and the word of it that they are about.
WAYS_OF_SAVING = {
    "compression": ("compression", "background"),
    "inline_compression": ("compression", "inline"),
    "inline_dedupe": ("dedupe", "inline"),
    "cross_volume_background_dedupe": ("cross_volume_dedupe", "background"),
    "cross_volume_inline_dedupe": ("cross_volume_dedupe", "inline"),
    "data_compaction": ("compaction", "inline"),
}
# Columns that are empty without a FabricPool, FlexCache or consistency group.
EMPTY = {
    "volume": (
        *("performance_tier_inactive_user_data", "tiering_minimum_cooling_days"),
        "performance_tier_inactive_user_data_percent",
    ),
    "volume/footprint": (
        *("volume_blocks_footprint_bin0_percent", "volume_blocks_footprint_bin1"),
        "volume_blocks_footprint_bin1_percent",
    ),
    "snapmirror": (
        *("cg_item_mappings", "fl_status", "fl_pending_work_task_count"),
        *("fl_pull_byte_count", "fl_push_byte_count"),
    ),
}
OF_AUTODELETE = {
    name: f"space.snapshot.autodelete.{name}"
    for name in ("enabled", "trigger", "commitment", "delete_order", "defer_delete")
}
OF_RELATIONSHIPS = {
    "relationship_id": "uuid",
    "healthy": "healthy",
    "last_transfer_type": "last_transfer_type",
    "policy": "policy.name",
    "state": "state",
    "lag_time": "lag_time",
    "total_transfer_bytes": "total_transfer_bytes",
}
