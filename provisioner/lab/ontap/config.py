"""Settings of the lab's ONTAP: those of its start, and those changed at run time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

GB = 1 << 30


@dataclass(frozen=True)
class Settings:
    """Behavior that ``/lab/settings`` changes while the lab runs.

    clone_reown: a FlexClone with uid and gid re-owns the whole tree.
    strict: unknown fields are refused (262179, 262197).
    location: a new volume's Location names it, or has its uuid.
    refusals: a check that may fail early or late fails in the answer, or in the job.
    failed_job: with return_timeout, a failed job gives an HTTP error, or 202 as ever.
    clone_guarantee: ``guarantee`` is accepted when a FlexClone is created.
    recovery_queue_seconds: how long a volume deleted without force is kept.
    split_seconds: how long a split takes.
    move_seconds: how long a move to another aggregate takes, and how it ends.
    scan_seconds: how long a scan for duplicates takes beyond the reading.
    transfer_seconds: how long a SnapMirror transfer takes beyond the copying.
    all_flash: inline deduplication is supported.
    snapmirror_license: the cluster has one.
    svm_peering: SVMs are peered, with each other and with those of the peer.
    volume_iops: what clients ask of each volume, which QoS policies limit.
    schedules: snapshot policies take snapshots by themselves.
    clock_ahead_seconds: how far the array's clock is ahead; moving it takes what
    became due, whether or not `schedules` is on.
    """

    clone_reown: bool = True
    strict: bool = True
    location: Literal["name", "uuid"] = "name"
    refusals: Literal["answer", "job"] = "answer"
    failed_job: Literal["error", "job"] = "error"
    clone_guarantee: bool = True
    job_retention_seconds: float = 300.0
    recovery_queue_seconds: float = 0.0
    split_seconds: float = 0.5
    move_seconds: float = 0.5
    move_ends: Literal["success", "failed", "cutover_wait"] = "success"
    scan_seconds: float = 0.0
    transfer_seconds: float = 0.0
    all_flash: bool = True
    snapmirror_license: bool = True
    svm_peering: bool = True
    volume_iops: int = 0
    schedules: bool = False
    clock_ahead_seconds: float = 0.0
    max_volumes_per_svm: int = 12_000
    max_clones_per_volume: int = 32_767
    max_snapshots_per_volume: int = 1_023
    max_volume_bytes: int = 300 << 40
    # By name; others are as large as the filesystem that holds the lab.
    aggregate_bytes: dict[str, int] = field(default_factory=dict)
    aggregate_is_full: bool = False


@dataclass(frozen=True)
class OntapConfig:
    """Everything needed to start; `root` keeps all state between starts.

    password: None takes the one kept in ``root/password``, made up when absent.
    port: 0 takes a free one; or_above: one that is taken, the next above it.
    readonly_user: has the same password, and 403 for writes,
    as ONTAP's role of that name; so have the accounts of `accounts.py`. btrfs_bytes:
    make and mount an image of that size. data_lif: the address that the data LIF
    reports. more_svms: SVMs beside `svm`. more_aggregates: where volumes can be moved.
    peer: a second cluster, on a root and a port of its own, which is peered. volumes:
    a file that names volumes, see given.py.
    """

    root: Path
    host: str = "127.0.0.1"
    port: int = 0
    or_above: bool = False
    user: str = "admin"
    readonly_user: str = "readonly"
    password: str | None = field(default=None, repr=False)
    svm: str = "svm_dev"
    more_svms: tuple[str, ...] = ()
    aggregate: str = "aggr1"
    more_aggregates: tuple[str, ...] = ("aggr2",)
    cluster: str = "lab"
    node: str = "node1"
    version: tuple[int, int, int] = (9, 16, 1)
    data_lif: str = "127.0.0.1"
    btrfs_bytes: int | None = None
    threads: int = 16
    job_threads: int = 8
    settings: Settings = field(default_factory=Settings)
    peer: OntapConfig | None = None
    volumes: Path | None = None
