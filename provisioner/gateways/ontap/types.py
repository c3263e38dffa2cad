"""Arguments and results of the ONTAP gateway: frozen, never raw dicts."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class OntapAccount:
    """Where to manage one SVM, and with which account.

    `ca_file` is a PEM file to verify TLS with; "" uses the certificate authorities of
    the system. TLS is always verified. After `answers_until` (time.monotonic()) nothing
    is asked any more, and until then no read is repeated; None: no limit.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    ca_file: str
    svm: str
    timeout_seconds: float = 30.0
    answers_until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """`version` is (snapshot, major, minor): 9.16.1 is (9, 16, 1)."""

    name: str
    version: tuple[int, int, int]

    @property
    def version_number(self) -> str:
        """The release as text, such as 9.16.1."""
        return ".".join(str(part) for part in self.version)


@dataclass(frozen=True, kw_only=True)
class Svm:
    """An SVM and the aggregates assigned to it.

    `serves_nfs` is None if ONTAP does not report it.
    """

    uuid: str
    name: str
    state: str
    serves_nfs: bool | None
    aggregates: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """An entry of a directory in a volume. "." is the directory itself."""

    name: str
    is_directory: bool
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """How much data there is, and how much of it takes no blocks of its own."""

    logical_bytes: int
    saved_bytes: int

    @property
    def physical_bytes(self) -> int:
        """What it takes, as Harvest computes it: logical used less savings.

        Source: conf/rest/9.12.0/aggr.yaml of github.com/NetApp/harvest, its
        compute_metric of total_physical_used and physical_used_wo_snapshots.
        """
        return self.logical_bytes - self.saved_bytes

    @property
    def ratio(self) -> float | None:
        """Logical to physical: 3.4 means 3.4:1. None while nothing is taken."""
        if not self.physical_bytes:
            return None
        return round(self.logical_bytes / self.physical_bytes, 2)


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """How much data an aggregate's volumes hold, and how much space sharing saves.

    `whole` counts shared data once per snapshot and FlexClone. `without_snapshots`
    leaves snapshots out, None where ONTAP does not say; `within` leaves out FlexClones
    as well: deduplication, compression and compaction remain. The bytes of
    deduplication and of compaction are None where ONTAP does not say.

    Source: GET /api/storage/aggregates, space.efficiency,
    space.efficiency_without_snapshots, space.efficiency_without_snapshots_flexclones,
    and of space.block_storage volume_deduplication_space_saved and
    data_compaction_space_saved.
    """

    whole: Reduction
    within: Reduction
    without_snapshots: Reduction | None = None
    deduplicated_bytes: int | None = None
    compacted_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """`efficiency` and `volumes` are None if this ONTAP release does not report them.

    `volumes` are those of all SVMs. With `is_assigned` the SVM may use it.
    """

    name: str
    uuid: str
    size_bytes: int
    available_bytes: int
    efficiency: Efficiency | None
    node: str = ""
    volumes: int | None = None
    is_assigned: bool = True


@dataclass(frozen=True, kw_only=True)
class CloneParent:
    """The volume and snapshot that a FlexClone was created from."""

    volume_name: str
    volume_uuid: str
    snapshot_name: str
    snapshot_uuid: str


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume as ONTAP reports it now. None, or "", is what ONTAP did not report.

    `junction_path` is "" while unmounted. `clone_parent` is None for a volume that is
    not a FlexClone. `uid`, `gid` and `root_mode` (octal digits, "755") are those of the
    root directory. `guarantee` is "none" or "volume". An offline volume has no
    `snapshot_reserve_percent`. `autosize_mode` is "off", "grow" or "grow_shrink", and
    `grows_to_bytes` its maximum, None with "off". With `is_destination` only SnapMirror
    writes to it.
    """

    uuid: str
    name: str
    state: str
    comment: str
    size_bytes: int
    junction_path: str
    export_policy: str
    snapshot_policy: str
    clone_parent: CloneParent | None
    uid: int | None
    gid: int | None
    root_mode: str
    guarantee: str
    snapshot_reserve_percent: int | None
    used_bytes: int | None
    aggregate: str
    created_at: dt.datetime | None
    used_inodes: int | None = None
    max_inodes: int | None = None
    autosize_mode: str = "off"
    grows_to_bytes: int | None = None
    is_destination: bool = False

    @property
    def free_bytes(self) -> int | None:
        """What files can still take: the snapshot reserve is not theirs.

        `used_bytes` counts what snapshots take beyond their reserve.
        """
        return self._free_of(self.size_bytes)

    @property
    def room_bytes(self) -> int | None:
        """What files can take once ONTAP has grown it as far as it does by itself."""
        return self._free_of(max(self.size_bytes, self.grows_to_bytes or 0))

    def _free_of(self, size_bytes: int) -> int | None:
        if self.used_bytes is None:
            return None
        reserve = size_bytes * (self.snapshot_reserve_percent or 0) // 100
        return max(size_bytes - reserve - self.used_bytes, 0)

    @property
    def sizes_itself(self) -> bool:
        """Whether ONTAP grows it when it fills up, or shrinks it."""
        return self.autosize_mode != "off"

    def is_resized_from(self, size_bytes: int) -> bool:
        """Return whether it has another size, except one that ONTAP gave it."""
        if is_same_size(self.size_bytes, size_bytes):
            return False
        is_larger = self.size_bytes > size_bytes
        return not (self.sizes_itself if is_larger else self._shrinks_itself)

    @property
    def _shrinks_itself(self) -> bool:
        return self.autosize_mode == "grow_shrink"

    def fits_in(self, size_bytes: int) -> bool:
        """Return whether its files fit in a size, whose snapshot reserve is not theirs.

        What ONTAP did not report fits.
        """
        reserve = size_bytes * (self.snapshot_reserve_percent or 0) // 100
        return (self.used_bytes or 0) <= size_bytes - reserve


SIZES_DIFFER_BYTES = 2**20
"""Sizes that differ by less count as equal, as releases round differently."""


def is_same_size(one_bytes: int, other_bytes: int) -> bool:
    """Return whether two sizes of volumes count as equal."""
    return abs(one_bytes - other_bytes) < SIZES_DIFFER_BYTES


LEAST_BYTES_OF_AN_INODE = 4 << 10
_MOST_INODES = 2_040_109_451


def most_inodes(size_bytes: int) -> int:
    """Return the maximum number of inodes for a volume of this size.

    Source: "Set the maximum number of files allowed for a volume": one per 4 KB.
    """
    return min(size_bytes // LEAST_BYTES_OF_AN_INODE, _MOST_INODES)


def more_inodes(used: int, given: int) -> int:
    """Return the inode limit for a volume that uses so many of the current one."""
    return used * 2 if is_short_of_inodes(used, given) else given


def is_short_of_inodes(used: int, given: int) -> bool:
    """Return whether at least nine tenths of the inodes are used."""
    return used * 10 >= given * 9


@dataclass(frozen=True, kw_only=True)
class VolumeSettings:
    """How a volume grows, and what it sets apart.

    None is what ONTAP did not report, or what a change leaves as it is. `autosize_mode`
    is "off", "grow" or "grow_shrink", `guarantee` "none" or "volume",
    `fractional_reserve` 0 or 100, `security_style` "unix", "mixed" or "ntfs".
    """

    autosize_mode: str | None = None
    autosize_max_bytes: int | None = None
    snapshot_reserve_percent: int | None = None
    guarantee: str | None = None
    fractional_reserve: int | None = None
    security_style: str | None = None
    max_inodes: int | None = None

    def __bool__(self) -> bool:
        return self != VolumeSettings()

    def lacking_in(self, seen: VolumeSettings) -> VolumeSettings:
        """Return which of these settings a volume does not have.

        It has what ONTAP does not report. More inodes than wanted are fine.
        """
        lacking = {
            name: wanted
            for name, wanted in vars(self).items()
            if wanted is not None and not _is_given(name, wanted, vars(seen)[name])
        }
        return VolumeSettings(**lacking)

    def same_of(self, seen: VolumeSettings) -> VolumeSettings:
        """Return what a volume has for each of these settings, and nothing else."""
        told = {name for name, wanted in vars(self).items() if wanted is not None}
        return VolumeSettings(**{name: vars(seen)[name] for name in told})


def _is_given(name: str, wanted: Any, seen: Any) -> bool:
    if seen is None:
        return True
    if name == "max_inodes":
        return bool(seen >= wanted)
    if name == "autosize_max_bytes":
        return is_same_size(seen, wanted)
    return bool(seen == wanted)


@dataclass(frozen=True, kw_only=True)
class VolumeUsage:
    """The space and inodes that a volume uses. None is what ONTAP did not report.

    `own_bytes` is what destroying it would free: its physical blocks without those
    shared with its parent's snapshot. `parent_uuid` and `parent_snapshot_uuid` are ""
    for a volume that is not a FlexClone. `split_bytes` is what a split would copy at
    most; `is_clone` is None where ONTAP did not say whether it is one. A FlexGroup has
    several `aggregates`. `snapshot_bytes` is what only its snapshots hold.
    `grows_to_bytes` is the size up to which ONTAP grows it by itself, None: it does
    not.
    """

    uuid: str
    name: str
    comment: str
    size_bytes: int
    snapshots: int
    parent_uuid: str
    parent_snapshot_uuid: str
    own_bytes: int | None
    is_clone: bool | None = None
    split_bytes: int | None = None
    aggregates: tuple[str, ...] = ()
    used_bytes: int | None = None
    used_inodes: int | None = None
    max_inodes: int | None = None
    snapshot_reserve_percent: int = 0
    snapshot_bytes: int | None = None
    grows_to_bytes: int | None = None

    @property
    def aggregate(self) -> str:
        """The one that it is in, "" for a FlexGroup or if ONTAP did not say."""
        return self.aggregates[0] if len(self.aggregates) == 1 else ""


@dataclass(frozen=True, kw_only=True)
class VolumeEfficiency:
    """The deduplication and compression of a volume, and what they have saved.

    `logical_bytes` is what its files hold, `physical_bytes` what the volume takes with
    its snapshots and without what it shares with its parent. `snapshot_bytes` is what
    only its snapshots hold. `state` is ONTAP's word for what its scanner does: "idle",
    "active", "pending" … `policy` is "" for none. Savings are 0, times and bytes None,
    where ONTAP did not report them.
    """

    uuid: str
    name: str
    comment: str
    aggregate: str
    is_online: bool
    is_clone: bool
    is_destination: bool
    is_enabled: bool
    is_inline: bool
    policy: str
    state: str
    progress: str
    last_began_at: dt.datetime | None
    last_ended_at: dt.datetime | None
    last_state: str
    last_error: str
    size_bytes: int
    logical_bytes: int | None
    physical_bytes: int | None
    snapshot_bytes: int
    deduplicated_bytes: int
    compressed_bytes: int

    @property
    def is_scanning(self) -> bool:
        """Whether its scanner runs, or waits for others of its node."""
        return self.state not in ("idle", "disabled", "")


@dataclass(frozen=True, kw_only=True)
class EfficiencyPolicy:
    """When ONTAP itself deduplicates the volumes that have the policy.

    `schedule` is the name of one of the cluster's, `hours` how long a run may take.
    """

    name: str
    schedule: str
    hours: int


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """A thin volume: guarantee none, snapshot reserve 0, snapshot policy none.

    It is created unmounted. `uid`, `gid` and `unix_permissions` (octal digits as text,
    "755") are those of its root directory. `shows_snapshots` says whether clients see
    .snapshot; with None, and before 9.13.1, they do. `qos_policy` limits its traffic,
    "" for none.
    """

    name: str
    aggregate: str
    size_bytes: int
    comment: str
    export_policy: str
    uid: int
    gid: int
    unix_permissions: str = "755"
    shows_snapshots: bool | None = None
    qos_policy: str = ""


@dataclass(frozen=True, kw_only=True)
class CloneSpec:
    """A FlexClone of one snapshot, created unmounted.

    With `uid` and `gid` ONTAP changes the owner of all files; None keeps the parent's.
    ONTAP refuses uid 0 (code 13565983). `qos_policy` limits its traffic, "" for none.
    """

    name: str
    parent_volume: str
    parent_snapshot: str
    comment: str
    uid: int | None
    gid: int | None
    qos_policy: str = ""


@dataclass(frozen=True, kw_only=True)
class CloneSplit:
    """How far the split of a clone from its parent's snapshot is.

    `is_clone` is None while ONTAP does not say, as of some volumes that are offline.
    `percent` is None unless a split runs. `estimate_bytes` is what a split copies at
    most, None if ONTAP does not say.
    """

    name: str
    state: str
    comment: str
    is_clone: bool | None
    is_running: bool
    is_mirrored: bool
    percent: int | None
    estimate_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class VolumeSnapshot:
    uuid: str
    name: str
    comment: str
    created_at: dt.datetime | None
    owners: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConsistencyGroup:
    """Volumes, by name, of which snapshots are taken at one moment."""

    uuid: str
    name: str
    volumes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SnapshotSpace:
    """The space of a snapshot, as ONTAP reports it.

    `reclaimable_bytes` is what deleting it would free, None where ONTAP does not say.
    """

    uuid: str
    size_bytes: int
    reclaimable_bytes: int | None
    volume_uuid: str = ""


@dataclass(frozen=True, kw_only=True)
class OntapJob:
    """An ONTAP job. `state` is ONTAP's word: "queued", "running", "paused" …"""

    uuid: str
    state: str
    description: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ExportRule:
    """`clients` are matches such as "10.0.0.0/24"; the rest are values of ONTAP."""

    clients: tuple[str, ...]
    ro_rule: tuple[str, ...] = ("sys",)
    rw_rule: tuple[str, ...] = ("sys",)
    superuser: tuple[str, ...] = ("sys",)
    protocols: tuple[str, ...] = ("nfs",)
    # Whether hosts may create set-uid and set-gid files, and device files.
    allow_suid: bool = False
    allow_device_creation: bool = False


@dataclass(frozen=True, kw_only=True)
class ExportPolicy:
    id: int
    name: str
    rules: tuple[ExportRule, ...]


@dataclass(frozen=True, kw_only=True)
class QosSpec:
    """A ceiling for the traffic of volumes: 0 is no limit of that kind.

    `is_shared`: all of its volumes have the limits together, otherwise each for itself.
    """

    name: str
    max_iops: int
    max_mbps: int
    is_shared: bool


@dataclass(frozen=True, kw_only=True)
class QosPolicy:
    uuid: str
    spec: QosSpec


@dataclass(frozen=True, kw_only=True)
class VolumeQos:
    """A volume's QoS policy, "" for none, and its latest traffic.

    `iops` and `bytes_per_second` are those of ONTAP's latest sample of 15 seconds, None
    where it has none.
    """

    uuid: str
    name: str
    comment: str
    policy: str
    iops: int | None
    bytes_per_second: int | None


@dataclass(frozen=True, kw_only=True)
class VolumeMove:
    """Where a volume is, and its last move to another aggregate.

    `move_state` is ONTAP's word, "" if it was never moved: "queued", "replicating",
    "cutover_wait", "cutover_pending", "cutover", "paused", "aborted", "failed",
    "success". `footprint_bytes` is what it takes in its aggregate, with its snapshots.
    None, or "", is what ONTAP did not report.
    """

    uuid: str
    name: str
    state: str
    comment: str
    aggregate: str
    tiering_policy: str
    footprint_bytes: int | None
    is_splitting: bool
    move_state: str
    destination: str
    started_at: str
    percent: int | None

    @property
    def is_moving(self) -> bool:
        return self.move_state in _MOVING

    @property
    def is_paused(self) -> bool:
        return self.move_state == "paused"


_MOVING = ("queued", "replicating", "cutover_wait", "cutover_pending", "cutover")


@dataclass(frozen=True, kw_only=True)
class DataLif:
    """A network address that serves NFS."""

    name: str
    address: str
    is_up: bool


@dataclass(frozen=True, kw_only=True)
class SvmPeer:
    """An SVM that ours is peered with, or about to be.

    `name` is what ours calls it. `state` is ONTAP's word: "peered", "pending",
    "suspended" …
    """

    name: str
    svm_uuid: str
    state: str
    has_snapmirror: bool


@dataclass(frozen=True, kw_only=True)
class MirrorVolumeSpec:
    """A thin volume for SnapMirror to fill, no smaller than its source."""

    name: str
    aggregate: str
    size_bytes: int
    comment: str
    export_policy: str


@dataclass(frozen=True, kw_only=True)
class Relationship:
    """A SnapMirror relationship.

    Paths are "svm:volume". `state` is ONTAP's word. `transfer_uuid` is "" unless a
    transfer is running. `exported_snapshot` is the one whose files the destination
    shows where it is mounted, "" before the first transfer.
    """

    uuid: str
    source_path: str
    destination_path: str
    policy: str
    state: str
    is_healthy: bool
    unhealthy_reason: str
    transfer_uuid: str
    exported_snapshot: str


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer of one snapshot. `state` is ONTAP's word."""

    uuid: str
    snapshot: str
    state: str
    bytes: int
    error_code: str
    error_message: str

    @property
    def is_running(self) -> bool:
        return self.state in ("queued", "transferring")


@dataclass(frozen=True, kw_only=True)
class SnapshotVersion:
    """A snapshot and its contents: the same snapshot at both ends of a relationship has
    the same `version_uuid`.
    """

    uuid: str
    name: str
    version_uuid: str
