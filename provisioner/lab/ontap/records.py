"""The rows of the lab's state: one frozen dataclass per kind.

A row knows its table, its key and its searchable columns. It is stored as one JSON
document, so that a field added later has its default in older rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

MAKING, LIVE, DELETING, QUEUED = "making", "live", "deleting", "queued"
# What a moved volume leaves behind for its clones; no request shows it.
LEFT = "left"


@dataclass(frozen=True)
class Svm:
    """A storage virtual machine with its own namespace and names."""

    TABLE: ClassVar[str] = "svm"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("name",)

    uuid: str
    name: str
    root_volume_uuid: str


@dataclass(frozen=True)
class Volume:
    """A FlexVol. The data plane has its files under its uuid."""

    TABLE: ClassVar[str] = "volume"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = (
        "svm_uuid",
        "name",
        "parent_uuid",
        "parent_snapshot_uuid",
        "phase",
        "junction_key",
        "junction_parent_uuid",
        "guarantee",
    )

    uuid: str
    svm_uuid: str
    name: str
    size_bytes: int
    create_time: str
    export_policy_id: int
    msid: int
    phase: str = MAKING
    comment: str = ""
    state: str = "online"
    type: str = "rw"
    junction_path: str | None = None
    junction_parent_uuid: str | None = None
    security_style: str = "unix"
    uid: int = 0
    gid: int = 0
    unix_permissions: int = 755
    guarantee: str = "volume"
    snapshot_policy: str = "default"
    snapshot_reserve_percent: int = 5
    is_svm_root: bool = False
    parent_uuid: str | None = None
    parent_snapshot_uuid: str | None = None
    is_splitting: bool = False
    # The name of its aggregate; empty: the first one.
    aggregate: str = ""
    # State, percent and destination of its last move; see moves.py.
    movement: dict[str, object] = field(default_factory=dict)
    split_percent: int = 0
    inherited_bytes: int = 0
    inherited_files: int = 0
    # What it holds beyond its files, and what of that is its own: see given.py.
    said_bytes: int = 0
    said_own_bytes: int = 0
    said_files: int = 0
    deleted_at: float | None = None
    # How long it stays in the recovery queue; None: as the settings say.
    retention_seconds: float | None = None
    # Savings that the parent had in the clone's base snapshot.
    inherited_savings_bytes: int = 0
    efficiency: dict[str, object] = field(default_factory=dict)
    # Documented settings that the lab remembers and gives back, by dotted name.
    remembered: dict[str, object] = field(default_factory=dict)

    @property
    def junction_key(self) -> str | None:
        """The junction path for comparisons, which ignore case."""
        return None if self.junction_path is None else self.junction_path.casefold()


@dataclass(frozen=True)
class Snapshot:
    """A read-only image of a volume."""

    TABLE: ClassVar[str] = "snapshot"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("volume_uuid", "name", "phase")

    uuid: str
    volume_uuid: str
    name: str
    create_time: str
    version_uuid: str
    phase: str = MAKING
    comment: str | None = None
    snapmirror_label: str | None = None
    expiry_time: str | None = None
    logical_bytes: int = 0
    files: int = 0
    # What deduplication had saved in the volume by then.
    saved_bytes: int = 0


@dataclass(frozen=True)
class ConsistencyGroup:
    """Volumes of an SVM of which snapshots are taken at one moment."""

    TABLE: ClassVar[str] = "consistency_group"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("svm_uuid", "name")

    uuid: str
    svm_uuid: str
    name: str
    volume_uuids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GroupSnapshot:
    """A snapshot of all volumes of a consistency group."""

    TABLE: ClassVar[str] = "group_snapshot"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("group_uuid", "name", "phase")

    uuid: str
    group_uuid: str
    name: str
    create_time: str
    phase: str = MAKING
    comment: str | None = None
    consistency_type: str = "crash"
    snapshot_uuids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ExportPolicy:
    """Who may mount a volume: rules in the order of their index."""

    TABLE: ClassVar[str] = "export_policy"
    KEY: ClassVar[str] = "id"
    SEARCHED: ClassVar[tuple[str, ...]] = ("svm_uuid", "name")

    id: int
    svm_uuid: str
    name: str
    rules: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """An ONTAP job; `verb` and `arguments` say what to run, again after a crash."""

    TABLE: ClassVar[str] = "job"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("state",)

    uuid: str
    description: str
    verb: str
    arguments: dict[str, object]
    start_time: str
    svm_uuid: str | None = None
    state: str = "queued"
    message: str = ""
    code: int = 0
    error: dict[str, object] | None = None
    end_time: str | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class SnapshotPolicy:
    """When snapshots are taken, and how many are kept; for one SVM or for all."""

    TABLE: ClassVar[str] = "snapshot_policy"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("name",)

    uuid: str
    name: str
    svm_uuid: str | None = None
    comment: str = ""
    enabled: bool = True
    # Each {"schedule": "daily", "count": 2, "prefix": "daily", …}.
    copies: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class QosPolicy:
    """Bounds of volumes' traffic: adaptive ones, per TB, or fixed ones.

    svm_uuid: None for one that the cluster came with.
    """

    TABLE: ClassVar[str] = "qos_policy"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("name",)

    uuid: str
    name: str
    svm_uuid: str | None = None
    adaptive: dict[str, object] | None = None
    fixed: dict[str, object] | None = None


@dataclass(frozen=True)
class EfficiencyPolicy:
    """When an SVM's volumes are deduplicated in the background, and for how long."""

    TABLE: ClassVar[str] = "efficiency_policy"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("svm_uuid", "name")

    uuid: str
    svm_uuid: str
    name: str
    comment: str = ""
    # None for those that follow neither a schedule nor a threshold.
    type: str | None = "scheduled"
    schedule: str | None = None
    # In hours; 0: no limit.
    duration: int = 0
    start_threshold_percent: int | None = None
    qos_policy: str = "best_effort"
    enabled: bool = True
    is_predefined: bool = False


@dataclass(frozen=True)
class QuotaRule:
    """How much a volume's files of one owner, or of all others, may take.

    targets: each {"name": …} or {"id": …}; the name of the default rule is empty.
    """

    TABLE: ClassVar[str] = "quota_rule"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("svm_uuid", "volume_uuid")

    uuid: str
    svm_uuid: str
    volume_uuid: str
    type: str
    targets: list[dict[str, str]] = field(default_factory=list)
    # Such as {"space.hard_limit": 10485760}.
    limits: dict[str, int] = field(default_factory=dict)
    user_mapping: bool | None = None

    @property
    def is_default(self) -> bool:
        """Whether it is about every owner that has no rule of its own."""
        return self.targets == [{"name": ""}]


@dataclass(frozen=True)
class SvmPeer:
    """What one cluster knows of the peering of an SVM of its own with another one."""

    TABLE: ClassVar[str] = "svm_peer"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("svm_uuid", "peer_svm_uuid")

    uuid: str
    svm_uuid: str
    peer_svm_uuid: str
    # What the peer is called here.
    name: str
    state: str
    applications: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SnapmirrorPolicy:
    """Which snapshots a relationship transfers, and how many it keeps."""

    TABLE: ClassVar[str] = "snapmirror_policy"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("name",)

    uuid: str
    name: str
    type: str = "async"
    svm_uuid: str | None = None
    comment: str = ""
    create_snapshot_on_source: bool = True
    copy_all_source_snapshots: bool = False
    copy_latest_source_snapshot: bool = False
    # Each {"label": …, "count": "7"}.
    retention: list[dict[str, object]] = field(default_factory=list)
    transfer_schedule: str | None = None
    throttle: int = 0
    identity_preservation: str | None = None


@dataclass(frozen=True)
class Relationship:
    """A SnapMirror relationship, as the destination's cluster keeps it."""

    TABLE: ClassVar[str] = "relationship"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("destination_uuid", "destination_path")

    uuid: str
    source_path: str
    source_uuid: str
    source_svm_uuid: str
    source_cluster: str
    destination_path: str
    destination_uuid: str
    destination_svm_uuid: str
    policy_uuid: str
    transfer_schedule: str | None = None
    throttle: int = 0
    state: str = "uninitialized"
    healthy: bool = True
    unhealthy_reason: str | None = None
    exported_snapshot: str | None = None
    exported_time: str | None = None
    transfer_uuid: str | None = None
    total_transfer_bytes: int = 0
    last_transfer_type: str | None = None


@dataclass(frozen=True)
class Destination:
    """What the source's cluster knows of a relationship, until it is released."""

    TABLE: ClassVar[str] = "destination"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("source_uuid",)

    uuid: str
    source_path: str
    source_uuid: str
    source_svm_uuid: str
    destination_path: str
    destination_svm_uuid: str
    destination_cluster: str
    policy_name: str
    policy_type: str
    # The snapshot that the next transfer starts from.
    base_snapshot_uuid: str | None = None


@dataclass(frozen=True)
class Transfer:
    """One run of a relationship."""

    TABLE: ClassVar[str] = "transfer"
    KEY: ClassVar[str] = "uuid"
    SEARCHED: ClassVar[tuple[str, ...]] = ("relationship_uuid", "state")

    uuid: str
    relationship_uuid: str
    type: str
    start_time: str
    state: str = "queued"
    source_snapshot: str | None = None
    throttle: int = 0
    # How far it came, in parts of `transfers.STEPS`: where the next one goes on.
    sent_steps: int = 0
    bytes_transferred: int = 0
    seconds: int = 0
    end_time: str | None = None
    ended_at: float | None = None
    error: str | None = None
