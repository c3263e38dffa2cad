"""What a monitoring poller reads: the columns of the templates of NetApp's Harvest.

What the lab does not have it refuses by name, or passes over where a poller asks for
that. Source: conf/rest of Harvest, the newest template for each kind.
"""

from __future__ import annotations

import pytest

from tests.support.ontap_rest import Rest

CLI = "/api/private/cli"
ASKED = {
    "/api/cluster/licensing/licenses": """
        name description entitlement.action entitlement.risk licenses scope
    """,
    "/api/cluster/nodes": """
        name controller.cpu.firmware_release controller.failed_fan.message.message
        controller.failed_power_supply.message.message controller.over_temperature
        location model serial_number service_processor.firmware_version state uuid
        version.full controller.failed_fan.count controller.failed_power_supply.count
        uptime
    """,
    "/api/cluster/peers": "uuid encryption.state name",
    "/api/cluster/schedules": """
        uuid cluster.name cron interval name scope svm.name type
    """,
    "/api/network/ip/interfaces": """
        ip.address name svm.name ipspace.name location.home_node.name
        location.home_port.name location.is_home location.node.name location.port.name
        services state subnet.name uuid
    """,
    "/api/snapmirror/policies": """
        uuid comment name scope svm.name transfer_schedule.name type
    """,
    "/api/storage/aggregates": """
        uuid block_storage.primary.disk_type block_storage.primary.raid_type
        data_encryption.software_encryption_enabled home_node.name name state
        block_storage.hybrid_cache.disk_count block_storage.hybrid_cache.size
        block_storage.primary.disk_count block_storage.primary.raid_size
        inode_attributes.files_total inode_attributes.files_used
        inode_attributes.max_files_available inode_attributes.max_files_possible
        snapshot.files_total snapshot.files_used snapshot.max_files_available
        snapshot.max_files_used space.block_storage.available
        space.block_storage.inactive_user_data space.block_storage.physical_used
        space.block_storage.size space.block_storage.used space.cloud_storage.used
        space.efficiency.logical_used space.efficiency.savings space.footprint
        space.footprint_percent space.snapshot.used volume_count
    """,
    "/api/storage/snapshot-policies": "svm.name uuid comment copies enabled name scope",
    "/api/svm/svms": "name nfs.enabled nsswitch",
    f"{CLI}/aggr": "uuid aggregate node root state",
    f"{CLI}/network/interface": "address lif vserver data_protocol",
    f"{CLI}/node": """
        node health max_aggr_size max_node_vvols max_vol_size vendor cpu_busy_time
    """,
    f"{CLI}/qos/adaptive-policy-group": """
        uuid absolute_min_iops expected_iops expected_iops_allocation num_workloads
        peak_iops peak_iops_allocation policy_group vserver
    """,
    f"{CLI}/snapmirror": """
        destination_path relationship_id cg_item_mappings destination_volume
        destination_volume_node destination_vserver fl_status healthy last_transfer_type
        policy_type relationship_group_type relationship_type schedule source_path
        source_volume source_vserver state status unhealthy_reason break_failed_count
        break_successful_count fl_pending_work_task_count fl_pull_byte_count
        fl_push_byte_count lag_time last_transfer_duration last_transfer_end_timestamp
        last_transfer_size newest_snapshot_timestamp resync_failed_count
        resync_successful_count total_transfer_bytes total_transfer_time_secs
        update_failed_count update_successful_count
    """,
    f"{CLI}/snapshot": """
        snapshot volume vserver owners snapmirror_label tags afs_used create_time
    """,
    f"{CLI}/volume": """
        volume vserver aggr_list autosize_mode clone_parent_name clone_parent_vserver
        clone_volume instance_uuid is_encrypted is_sis_volume
        is_space_enforcement_logical is_space_reporting_logical junction_path nodes
        snaplock_type snapshot_policy space_mgmt_try_first state tags
        tiering_minimum_cooling_days tiering_policy type volume_style_extended vsroot
        autosize_grow_threshold_percent autosize_shrink_threshold_percent available
        compression_space_saved compression_space_saved_percent dedupe_space_saved
        dedupe_space_saved_percent expected_available files files_used filesystem_size
        logical_available logical_used logical_used_by_afs logical_used_by_snapshots
        logical_used_percent max_autosize min_autosize overwrite_reserve
        overwrite_reserve_used percent_snapshot_space percent_used
        performance_tier_inactive_user_data performance_tier_inactive_user_data_percent
        sis_space_saved sis_space_saved_percent size size_available_for_snapshots
        size_used_by_snapshots snapshot_count snapshot_reserve_available
        snapshot_reserve_size snapshot_space_used total used virtual_used
        virtual_used_percent
    """,
    f"{CLI}/volume/efficiency": """
        volume vserver compression cross_volume_background_dedupe
        cross_volume_inline_dedupe data_compaction inline_compression inline_dedupe
        last_op_state path policy state storage_efficiency_mode type last_op_size
    """,
    f"{CLI}/volume/footprint": """
        volume vserver delayed_free_footprint flexvol_metadata_footprint total_footprint
        total_metadata_footprint volume_blocks_footprint_bin0
        volume_blocks_footprint_bin0_percent volume_blocks_footprint_bin1
        volume_blocks_footprint_bin1_percent volume_guarantee_footprint
    """,
    f"{CLI}/volume/snapshot/autodelete": "volume vserver enabled",
    f"{CLI}/vserver": """
        vserver anti_ransomware_default_volume_state is_space_enforcement_logical
        is_space_reporting_logical operational_state type uuid
    """,
}
# What the page of the lab says is missing: it counts no such thing.
MISSING = {
    "/api/storage/aggregates": """
        snapshot.files_total snapshot.files_used snapshot.max_files_available
        snapshot.max_files_used
    """,
    f"{CLI}/node": "max_aggr_size cpu_busy_time",
    f"{CLI}/snapmirror": """
        break_failed_count break_successful_count resync_failed_count
        resync_successful_count total_transfer_time_secs update_failed_count
        update_successful_count
    """,
    f"{CLI}/volume": """
        expected_available logical_available logical_used_by_snapshots
        size_available_for_snapshots size_used_by_snapshots snapshot_reserve_available
        snapshot_space_used
    """,
    f"{CLI}/volume/efficiency": "storage_efficiency_mode",
}
# Whole kinds of things that there are none of: 404, which the poller passes over.
NOT_THERE = [
    "/api/storage/cluster",
    "/api/protocols/cifs/services",
    "/api/storage/qtrees",
    f"{CLI}/qos/policy-group",
    f"{CLI}/qos/workload",
    f"{CLI}/volume/efficiency/stat",
    f"{CLI}/volume/snaplock",
]


@pytest.mark.parametrize("path", ASKED)
def test_a_column_is_there_or_refused_by_name(rest: Rest, path: str) -> None:
    asked, missing = set(ASKED[path].split()), set(MISSING.get(path, "").split())
    uuid = rest.volume("v")
    rest.snapshot(uuid, "s")
    assert missing < asked

    answer = rest.get(path, fields=",".join(sorted(asked - missing)))
    assert "records" in answer
    for column in sorted(missing):
        response = rest("GET", path, fields=column)
        assert (response.status_code, rest.code(response)) == (400, "262197"), column
        assert column in response.text
    poller = {"fields": ",".join(sorted(asked)), "ignore_unknown_fields": "true"}
    assert rest.get(path, **poller)["num_records"] == answer["num_records"]


@pytest.mark.parametrize("path", NOT_THERE)
def test_what_there_is_none_of_is_not_found(rest: Rest, path: str) -> None:
    response = rest("GET", path)
    assert (response.status_code, rest.code(response)) == (404, "3")


def test_columns_of_savings_are_those_of_the_volume(rest: Rest) -> None:
    settings = {"dedupe": "both", "compression": "inline", "compaction": "inline"}
    rest.volume("v", efficiency=settings)
    columns = "path,inline_dedupe,compression,inline_compression,data_compaction"
    query = {"fields": columns, "volume": "v"}
    [row] = rest.get(f"{CLI}/volume/efficiency", **query)["records"]
    assert row["path"] == "/vol/v"
    assert row["inline_dedupe"] is row["inline_compression"] is True
    assert (row["compression"], row["data_compaction"]) == (False, True)


def test_adaptive_policies_have_their_units(rest: Rest) -> None:
    path = f"{CLI}/qos/adaptive-policy-group"
    rows = rest.get(path, fields="expected_iops")["records"]
    found = {row["policy_group"]: row["expected_iops"] for row in rows}
    assert found["extreme"] == "6144IOPS/TB"
    assert "extreme-fixed" not in found
