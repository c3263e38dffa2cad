"""Our types, from ONTAP's JSON.

Only uuid and name are always present. ONTAP omits fields that are unset, expensive
fields that were not requested, and most fields of an offline volume. A missing key
never means false or 0.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from provisioner.gateways.ontap.types import (
    Aggregate,
    CloneParent,
    CloneSplit,
    Cluster,
    DataLif,
    Efficiency,
    ExportPolicy,
    ExportRule,
    FileEntry,
    OntapJob,
    QosPolicy,
    QosSpec,
    Reduction,
    Relationship,
    SnapshotSpace,
    SnapshotVersion,
    Svm,
    SvmPeer,
    Transfer,
    Volume,
    VolumeEfficiency,
    VolumeMove,
    VolumeQos,
    VolumeSettings,
    VolumeSnapshot,
    VolumeUsage,
)

Record = Mapping[str, Any]

# Expensive fields (clone, nas, guarantee, parts of space) must be named.
VOLUME_FIELDS = (
    "uuid,name,state,type,comment,size,create_time,aggregates,snapshot_policy.name,"
    "clone.is_flexclone,clone.parent_volume,clone.parent_snapshot,"
    "nas.path,nas.uid,nas.gid,nas.unix_permissions,nas.export_policy.name,"
    "guarantee.type,"
    "space.used,space.snapshot.reserve_percent,"
    "files.used,files.maximum,autosize.mode,autosize.maximum"
)
# All of space: releases that lack a part reject its name.
SETTINGS_FIELDS = (
    "uuid,name,autosize.mode,autosize.maximum,guarantee.type,nas.security_style,space,"
    "space.snapshot.reserve_percent,files.maximum"
)
# All of clone: releases without clone.inherited_physical_used reject that name.
USAGE_FIELDS = (
    "uuid,name,comment,size,snapshot_count,clone,space.used,space.physical_used,"
    "space.snapshot,aggregates.name,files.used,files.maximum,"
    "autosize.mode,autosize.maximum"
)
# All of clone: what a split shows is expensive, and absent while none runs.
SPLIT_FIELDS = "uuid,name,state,comment,clone,snapmirror.is_protected"
# All of movement: its parts are absent until a volume is moved.
MOVE_FIELDS = (
    "uuid,name,state,comment,aggregates.name,tiering.policy,space.used,"
    "space.total_footprint,clone.split_initiated,movement"
)
# All of space and of efficiency: releases that lack a part reject its name.
EFFICIENCY_FIELDS = (
    "uuid,name,comment,state,type,size,aggregates.name,clone,space,efficiency"
)
SNAPSHOT_FIELDS = "uuid,name,comment,create_time,owners"
SNAPSHOT_SPACE_FIELDS = "uuid,size,reclaimable_space"
VERSION_FIELDS = "uuid,name,version_uuid"
# All of space: releases that lack one kind of efficiency reject its name.
# "*" has the number of volumes, whose name older releases reject.
AGGREGATE_FIELDS = "*,space"
FILE_FIELDS = "name,type,owner_id,group_id"
SVM_FIELDS = "uuid,name,state,nfs.enabled,aggregates.name"
LIF_FIELDS = "name,ip.address,state,enabled"
JOB_FIELDS = "uuid,state,description,message"
PEER_FIELDS = "name,state,applications,peer.svm"
RELATIONSHIP_FIELDS = (
    "uuid,source.path,state,healthy,unhealthy_reason,policy.name,"
    "transfer.uuid,destination.path,exported_snapshot"
)
TRANSFER_FIELDS = "uuid,snapshot,state,bytes_transferred,error_info"
QOS_POLICY_FIELDS = "uuid,name,fixed"
QOS_FIELDS = (
    "uuid,name,comment,qos.policy.name,metric.iops.total,metric.throughput.total"
)
EXPORT_POLICY_FIELDS = "id,name,rules"


def cluster(record: Record) -> Cluster:
    version = record["version"]
    return Cluster(
        name=record["name"],
        version=(version["generation"], version["major"], version["minor"]),
    )


def svm(record: Record) -> Svm:
    return Svm(
        uuid=record["uuid"],
        name=record["name"],
        state=record.get("state", ""),
        serves_nfs=_at(record, "nfs.enabled", None),
        aggregates=tuple(each["name"] for each in record.get("aggregates", ())),
    )


def file_entry(record: Record) -> FileEntry:
    return FileEntry(
        name=record["name"],
        is_directory=record.get("type") == "directory",
        uid=record["owner_id"],
        gid=record["group_id"],
    )


def aggregate(record: Record) -> Aggregate:
    return Aggregate(
        name=record["name"],
        uuid=record["uuid"],
        size_bytes=_at(record, "space.block_storage.size", 0),
        available_bytes=_at(record, "space.block_storage.available", 0),
        efficiency=_efficiency(record),
        node=_at(record, "node.name", ""),
        volumes=_at(record, "volume_count", None),
    )


def _efficiency(record: Record) -> Efficiency | None:
    whole = _reduction(record, "efficiency")
    within = _reduction(record, "efficiency_without_snapshots_flexclones")
    if whole is None or within is None:
        return None
    block = "space.block_storage"
    return Efficiency(
        whole=whole,
        within=within,
        without_snapshots=_reduction(record, "efficiency_without_snapshots"),
        deduplicated_bytes=_at(
            record, f"{block}.volume_deduplication_space_saved", None
        ),
        compacted_bytes=_at(record, f"{block}.data_compaction_space_saved", None),
    )


def _reduction(record: Record, kind: str) -> Reduction | None:
    logical = _at(record, f"space.{kind}.logical_used", None)
    saved = _at(record, f"space.{kind}.savings", None)
    if logical is None or saved is None:
        return None
    return Reduction(logical_bytes=logical, saved_bytes=saved)


def _aggregate_name(record: Record) -> str:
    """Return the aggregate of a volume that is in one, "" if ONTAP does not say."""
    aggregates = record.get("aggregates") or [{}]
    name: str = aggregates[0].get("name", "")
    return name


def volume_efficiency(record: Record) -> VolumeEfficiency:
    logical = _at(record, "space.logical_space.used_by_afs", None)
    savings = "efficiency.space_savings"
    policy = _at(record, "efficiency.policy.name", "-")
    return VolumeEfficiency(
        uuid=record["uuid"],
        name=record["name"],
        comment=record.get("comment", ""),
        aggregate=_aggregate_name(record),
        is_online=record.get("state") == "online",
        is_clone=_at(record, "clone.is_flexclone", False) is True,
        is_destination=record.get("type") == "dp",
        is_enabled=_at(record, "efficiency.state", "disabled") != "disabled",
        is_inline=_at(record, "efficiency.dedupe", "none") in ("inline", "both"),
        policy="" if policy in ("-", "none") else policy,
        state=_at(record, "efficiency.op_state", ""),
        progress=_at(record, "efficiency.progress", ""),
        last_began_at=_time(_at(record, "efficiency.last_op_begin", None)),
        last_ended_at=_time(_at(record, "efficiency.last_op_end", None)),
        last_state=_at(record, "efficiency.last_op_state", ""),
        last_error=_at(record, "efficiency.last_op_err", ""),
        size_bytes=record.get("size", 0),
        logical_bytes=_at(record, "space.used", None) if logical is None else logical,
        physical_bytes=_own_bytes(
            record, is_clone=_at(record, "clone.is_flexclone", False) is True
        ),
        snapshot_bytes=_at(record, "space.snapshot.used", 0),
        deduplicated_bytes=_at(record, f"{savings}.dedupe", 0),
        compressed_bytes=_at(record, f"{savings}.compression", 0),
    )


def cron_of(record: Record) -> str:
    """Return a schedule of the cluster as five fields of cron."""
    fields = ("minutes", "hours", "days", "months", "weekdays")
    return " ".join(
        ",".join(map(str, _at(record, f"cron.{field}", ()))) or "*" for field in fields
    )


def volume(record: Record) -> Volume:
    return Volume(
        uuid=record["uuid"],
        name=record["name"],
        state=record.get("state", ""),
        comment=record.get("comment", ""),
        size_bytes=record.get("size", 0),
        junction_path=_at(record, "nas.path", ""),
        export_policy=_at(record, "nas.export_policy.name", ""),
        snapshot_policy=_at(record, "snapshot_policy.name", ""),
        clone_parent=_clone_parent(record),
        uid=_at(record, "nas.uid", None),
        gid=_at(record, "nas.gid", None),
        root_mode=str(_at(record, "nas.unix_permissions", "")).lstrip("0"),
        guarantee=_at(record, "guarantee.type", ""),
        snapshot_reserve_percent=_at(record, "space.snapshot.reserve_percent", None),
        used_bytes=_at(record, "space.used", None),
        used_inodes=_at(record, "files.used", None),
        max_inodes=_at(record, "files.maximum", None),
        aggregate=_aggregate_name(record),
        created_at=_time(record.get("create_time")),
        autosize_mode=_at(record, "autosize.mode", "off"),
        grows_to_bytes=_grows_to_bytes(record),
        is_destination=record.get("type") == "dp",
    )


def volume_settings(record: Record) -> VolumeSettings:
    return VolumeSettings(
        autosize_mode=_at(record, "autosize.mode", None),
        autosize_max_bytes=_at(record, "autosize.maximum", None),
        snapshot_reserve_percent=_at(record, "space.snapshot.reserve_percent", None),
        guarantee=_at(record, "guarantee.type", None),
        fractional_reserve=_at(record, "space.fractional_reserve", None),
        security_style=_at(record, "nas.security_style", None),
        max_inodes=_at(record, "files.maximum", None),
    )


def volume_usage(record: Record) -> VolumeUsage:
    parent = _clone_parent(record)
    return VolumeUsage(
        uuid=record["uuid"],
        name=record["name"],
        comment=record.get("comment", ""),
        size_bytes=record.get("size", 0),
        snapshots=record.get("snapshot_count", 0),
        parent_uuid=parent.volume_uuid if parent else "",
        parent_snapshot_uuid=parent.snapshot_uuid if parent else "",
        own_bytes=_own_bytes(record, is_clone=parent is not None),
        is_clone=_at(record, "clone.is_flexclone", None),
        split_bytes=_at(record, "clone.split_estimate", None),
        aggregates=tuple(each["name"] for each in record.get("aggregates", ())),
        used_bytes=_at(record, "space.used", None),
        used_inodes=_at(record, "files.used", None),
        max_inodes=_at(record, "files.maximum", None),
        snapshot_reserve_percent=_at(record, "space.snapshot.reserve_percent", 0),
        snapshot_bytes=_at(record, "space.snapshot.used", None),
        grows_to_bytes=_grows_to_bytes(record),
    )


def _grows_to_bytes(record: Record) -> int | None:
    """Return up to which size ONTAP grows a volume, None if it does not."""
    if _at(record, "autosize.mode", "off") == "off":
        return None
    most: int | None = _at(record, "autosize.maximum", None)
    return most


def _own_bytes(record: Record, *, is_clone: bool) -> int | None:
    """Return the bytes that a volume does not share with its parent.

    `physical_used` of a clone includes shared blocks. Older releases do not report the
    shared part, but a split estimate, which counts the same blocks.
    """
    used = _at(record, "space.physical_used", None)
    if used is None or not is_clone:
        return used if used is None else int(used)
    shared = _at(record, "clone.inherited_physical_used", None)
    if shared is None:
        shared = _at(record, "clone.split_estimate", None)
    return None if shared is None else max(0, used - shared)


def clone_split(record: Record) -> CloneSplit:
    return CloneSplit(
        name=record["name"],
        state=record.get("state", ""),
        comment=record.get("comment", ""),
        is_clone=_at(record, "clone.is_flexclone", None),
        is_running=_at(record, "clone.split_initiated", False),
        is_mirrored=_at(record, "snapmirror.is_protected", False),
        percent=_at(record, "clone.split_complete_percent", None),
        estimate_bytes=_at(record, "clone.split_estimate", None),
    )


def volume_move(record: Record) -> VolumeMove:
    used = _at(record, "space.used", None)
    return VolumeMove(
        uuid=record["uuid"],
        name=record["name"],
        state=record.get("state", ""),
        comment=record.get("comment", ""),
        aggregate=_aggregate_name(record),
        tiering_policy=_at(record, "tiering.policy", ""),
        footprint_bytes=_at(record, "space.total_footprint", used),
        is_splitting=_at(record, "clone.split_initiated", False),
        move_state=_at(record, "movement.state", ""),
        destination=_at(record, "movement.destination_aggregate.name", ""),
        started_at=_at(record, "movement.start_time", ""),
        percent=_at(record, "movement.percent_complete", None),
    )


def max_volumes(record: Record) -> int | None:
    """Return the SVM's limit, which ONTAP sends as text: "unlimited" for none."""
    limit = str(record.get("max_volumes", ""))
    return int(limit) if limit.isdigit() else None


def snapshot(record: Record) -> VolumeSnapshot:
    return VolumeSnapshot(
        uuid=record["uuid"],
        name=record["name"],
        comment=record.get("comment", ""),
        created_at=_time(record.get("create_time")),
        owners=tuple(record.get("owners", ())),
    )


def snapshot_space(record: Record) -> SnapshotSpace:
    return SnapshotSpace(
        uuid=record["uuid"],
        size_bytes=record.get("size", 0),
        reclaimable_bytes=record.get("reclaimable_space"),
        volume_uuid=_at(record, "volume.uuid", ""),
    )


def svm_peer(record: Record) -> SvmPeer:
    return SvmPeer(
        name=record["name"],
        svm_uuid=_at(record, "peer.svm.uuid", ""),
        state=record.get("state", ""),
        has_snapmirror="snapmirror" in record.get("applications", ()),
    )


def relationship(record: Record) -> Relationship:
    return Relationship(
        uuid=record["uuid"],
        source_path=_at(record, "source.path", ""),
        destination_path=_at(record, "destination.path", ""),
        policy=_at(record, "policy.name", ""),
        state=record.get("state", ""),
        is_healthy=record.get("healthy", True),
        unhealthy_reason=" ".join(
            reason.get("message", "") for reason in record.get("unhealthy_reason", ())
        ),
        transfer_uuid=_at(record, "transfer.uuid", ""),
        exported_snapshot=record.get("exported_snapshot") or "",
    )


def transfer(record: Record) -> Transfer:
    return Transfer(
        uuid=record["uuid"],
        snapshot=record.get("snapshot", ""),
        state=record.get("state", ""),
        bytes=record.get("bytes_transferred", 0),
        error_code=str(_at(record, "error_info.code", "")),
        error_message=_at(record, "error_info.message", ""),
    )


def snapshot_version(record: Record) -> SnapshotVersion:
    return SnapshotVersion(
        uuid=record["uuid"],
        name=record["name"],
        version_uuid=record.get("version_uuid", ""),
    )


def export_policy(record: Record) -> ExportPolicy:
    return ExportPolicy(
        id=record["id"],
        name=record["name"],
        rules=tuple(_export_rule(rule) for rule in record.get("rules", ())),
    )


def qos_policy(record: Record) -> QosPolicy:
    return QosPolicy(
        uuid=record["uuid"],
        spec=QosSpec(
            name=record["name"],
            max_iops=_at(record, "fixed.max_throughput_iops", 0),
            max_mbps=_at(record, "fixed.max_throughput_mbps", 0),
            is_shared=_at(record, "fixed.capacity_shared", False),
        ),
    )


def volume_qos(record: Record) -> VolumeQos:
    return VolumeQos(
        uuid=record["uuid"],
        name=record["name"],
        comment=record.get("comment", ""),
        policy=_at(record, "qos.policy.name", ""),
        iops=_at(record, "metric.iops.total", None),
        bytes_per_second=_at(record, "metric.throughput.total", None),
    )


def ontap_job(record: Record) -> OntapJob:
    return OntapJob(
        uuid=record["uuid"],
        state=record.get("state", ""),
        description=record.get("description", ""),
        message=record.get("message", ""),
    )


def data_lif(record: Record) -> DataLif:
    return DataLif(
        name=record["name"],
        address=_at(record, "ip.address", ""),
        is_up=record.get("state") == "up" and record.get("enabled") is not False,
    )


def _clone_parent(record: Record) -> CloneParent | None:
    if _at(record, "clone.is_flexclone", False) is not True:
        return None
    return CloneParent(
        volume_name=_at(record, "clone.parent_volume.name", ""),
        volume_uuid=_at(record, "clone.parent_volume.uuid", ""),
        snapshot_name=_at(record, "clone.parent_snapshot.name", ""),
        snapshot_uuid=_at(record, "clone.parent_snapshot.uuid", ""),
    )


def _export_rule(record: Record) -> ExportRule:
    return ExportRule(
        clients=tuple(client["match"] for client in record.get("clients", ())),
        ro_rule=tuple(record.get("ro_rule", ())),
        rw_rule=tuple(record.get("rw_rule", ())),
        superuser=tuple(record.get("superuser", ())),
        protocols=tuple(record.get("protocols", ())),
        # An old release that does not report these uses ONTAP's default.
        allow_suid=record.get("allow_suid", True),
        allow_device_creation=record.get("allow_device_creation", True),
    )


def _at(record: Record, path: str, default: Any) -> Any:
    """Return the value at a dotted path, or the default if any part is missing."""
    value: Any = record
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def _time(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
