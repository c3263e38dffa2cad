"""What goes in and comes out of the ONTAP gateway: frozen, no raw dicts."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class OntapAccount:
    """Where one SVM is managed and with whose account.

    `ca_file` is a PEM file to verify TLS with; "" means the system's own
    certificate authorities. TLS is always verified.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    ca_file: str
    svm: str
    timeout_seconds: float = 30.0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """`version` is (generation, major, minor): 9.16.1 is (9, 16, 1)."""

    name: str
    version: tuple[int, int, int]
    version_text: str

    @property
    def version_number(self) -> str:
        """The release as people write it, such as 9.16.1."""
        return ".".join(str(part) for part in self.version)


@dataclass(frozen=True, kw_only=True)
class Svm:
    """`serves_nfs` is None where ONTAP did not say; `aggregates` are those that are
    assigned to it.
    """

    name: str
    state: str
    serves_nfs: bool | None
    aggregates: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """An entry of a directory in a volume; "." is the directory itself."""

    name: str
    is_directory: bool
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """What an aggregate's volumes hold, and how much of it takes no blocks of its own.

    `logical_bytes` counts what snapshots and FlexClones share once for each of them.
    `saved_bytes` is all that sharing saves; `saved_within_bytes` the part of it that
    deduplication, compression and compaction save, snapshots and clones left out.

    Source: GET /api/storage/aggregates, space.efficiency and
    space.efficiency_without_snapshots_flexclones.
    """

    logical_bytes: int
    saved_bytes: int
    saved_within_bytes: int


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """`efficiency` is None where this release of ONTAP does not say."""

    name: str
    uuid: str
    size_bytes: int
    available_bytes: int
    efficiency: Efficiency | None


@dataclass(frozen=True, kw_only=True)
class CloneParent:
    """What a FlexClone was made from."""

    volume_name: str
    volume_uuid: str
    snapshot_name: str
    snapshot_uuid: str


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume as ONTAP shows it now.

    `junction_path` is "" while unmounted. `clone_parent` is None for a volume that
    is not a FlexClone. `uid`, `gid` and `root_mode` (octal digits, "755"; "" where
    ONTAP did not say) are those of the root directory only.
    `guarantee` is "none" or "volume"; `snapshot_reserve_percent` is None where
    ONTAP did not say (offline). `used_inodes` of `max_inodes` are taken; None where
    ONTAP did not say. `sizes_itself`: ONTAP grows it when it fills up, or shrinks it.
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
    sizes_itself: bool = False


SIZES_DIFFER_BYTES = 2**20
"""Sizes that differ by less are one size: releases round in ways of their own."""

_BYTES_OF_AN_INODE = 4 << 10
_MOST_INODES = 2_040_109_451


def most_inodes(size_bytes: int) -> int:
    """Return how many inodes ONTAP lets a volume of this size have.

    Source: "Set the maximum number of files allowed for a volume": one for each 4 KB.
    """
    return min(size_bytes // _BYTES_OF_AN_INODE, _MOST_INODES)


@dataclass(frozen=True, kw_only=True)
class VolumeUsage:
    """What a volume takes of what there is.

    `own_bytes` is what destroying it would free: its physical blocks less those of its
    parent's snapshot; None where ONTAP did not say. `parent_uuid` and
    `parent_snapshot_uuid` are "" for a volume that is not a FlexClone. `aggregates` are
    those that it lies on: one, or the many of a FlexGroup.
    """

    uuid: str
    name: str
    comment: str
    size_bytes: int
    snapshots: int
    parent_uuid: str
    parent_snapshot_uuid: str
    own_bytes: int | None
    aggregates: tuple[str, ...] = ()
    used_bytes: int | None = None
    used_inodes: int | None = None
    max_inodes: int | None = None


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """A thin volume without schedules: guarantee none, reserve 0, policy none.

    `uid`, `gid` and `unix_permissions` (octal digits as text, "755") are those of
    its root directory. It is created unmounted. `shows_snapshots`: whether clients
    see .snapshot; None, and releases before 9.13.1: they do.
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


@dataclass(frozen=True, kw_only=True)
class CloneSpec:
    """A FlexClone of one snapshot, created unmounted.

    With `uid` and `gid` ONTAP is asked to re-own the whole clone; None leaves the
    parent's owners (`nas.uid` 0 is refused by ONTAP, code 13565983).
    """

    name: str
    parent_volume: str
    parent_snapshot: str
    comment: str
    uid: int | None
    gid: int | None


@dataclass(frozen=True, kw_only=True)
class VolumeSnapshot:
    uuid: str
    name: str
    comment: str
    created_at: dt.datetime | None
    owners: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OntapJob:
    """A job of ONTAP's own. `state` is its word: "queued", "running", "paused" …"""

    uuid: str
    state: str
    description: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ExportRule:
    """`clients` are matches such as "10.0.0.0/24"; the rest are ONTAP's words."""

    clients: tuple[str, ...]
    ro_rule: tuple[str, ...] = ("sys",)
    rw_rule: tuple[str, ...] = ("sys",)
    superuser: tuple[str, ...] = ("sys",)
    protocols: tuple[str, ...] = ("nfs",)
    # Whether hosts may make files set-uid, set-gid or devices.
    allow_suid: bool = False
    allow_device_creation: bool = False


@dataclass(frozen=True, kw_only=True)
class ExportPolicy:
    id: int
    name: str
    rules: tuple[ExportRule, ...]


@dataclass(frozen=True, kw_only=True)
class DataLif:
    """A network address that serves NFS."""

    name: str
    address: str
    is_up: bool
