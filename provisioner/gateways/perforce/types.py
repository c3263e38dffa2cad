"""Arguments and results of the Perforce gateway: frozen, never raw dicts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

TICKET = re.compile(r"[0-9A-Fa-f]{32,}")


@dataclass(frozen=True, kw_only=True)
class PerforceAccount:
    """Which server, as which user. `password` may be a password or a ticket.

    `fingerprint` is the pinned fingerprint of an `ssl:` port, "" for other ports.
    `charset` is P4CHARSET, "none" for a server that is not in Unicode mode.
    `host` is the name to report for this host, for clients bound to a Host.
    `sync_connections` is the number of parallel connections of a template's sync; 0
    lets the server choose.

    `timeout_seconds` limits connecting, and commands of a fixed size. For commands
    whose work grows with the number of files, `bulk_timeout_seconds` limits how long
    the server may be silent: a big flush may send nothing for minutes.
    """

    port: str
    user: str
    password: str = field(repr=False)
    charset: str = "none"
    fingerprint: str = ""
    host: str = ""
    sync_connections: int = 0
    timeout_seconds: float = 60.0
    bulk_timeout_seconds: float = 3600.0

    @property
    def has_ticket(self) -> bool:
        """Whether `password` is a ticket, which we cannot renew ourselves."""
        return TICKET.fullmatch(self.password) is not None


@dataclass(frozen=True, kw_only=True)
class PerforcePerson:
    """A user as the server spells it; people edit their address and name themselves."""

    user: str
    email: str
    full_name: str


@dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """The part of `p4 info` that Cloneyard uses.

    `services` and `server_id` are those of the p4d that answered, also through a proxy
    or broker. `replica_of` is the P4TARGET of a replica, "" for others.
    """

    version: str
    is_case_sensitive: bool
    is_unicode: bool
    server_id: str
    services: str
    replica_of: str = ""
    is_proxied: bool = False
    is_brokered: bool = False


@dataclass(frozen=True, kw_only=True)
class Configurable:
    """A setting of a server. `source` is "configure", "default", an option of p4d, …"""

    name: str
    value: str
    source: str


@dataclass(frozen=True, kw_only=True)
class LogPiece:
    """Bytes of a server's log, and the offset of those that come next."""

    data: bytes
    next_offset: int


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """Where a server keeps some of its files.

    `name` is P4ROOT, P4JOURNAL, P4LOG, TEMP or that of a depot. `fs_type` is what the
    operating system calls it, such as "xfs" or "nfs". `mount_point` is "" if unknown.
    """

    name: str
    fs_type: str
    mount_point: str
    percent_used: int


@dataclass(frozen=True, kw_only=True)
class Depot:
    """A depot; `kind` is its Type, such as local, stream or remote."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class DamagedRevision:
    """A revision whose content is not what was submitted: BAD or MISSING.

    Of a file that is shelved in `change`, `revision` is None.
    """

    path: str
    revision: int | None
    change: int
    action: str
    type: str
    status: str


@dataclass(frozen=True, kw_only=True)
class ServerUsage:
    """How many users and files a server has, None where it does not say."""

    users: int | None
    files: int | None


@dataclass(frozen=True, kw_only=True)
class ClientSpec:
    r"""A client spec. `view` lines are "//depot/path/... //client/..." as in the form.

    An empty `host` lets any host use it. `options` are the six or seven words of the
    form. `updated_at` and `accessed_at` are None for a client that does not exist yet.
    `server_id` is the only edge server that may use it; the server sets it. Bytes of
    the description that are not UTF-8 appear as \xe9; names have them as os.fsdecode.
    """

    name: str
    owner: str
    root: str
    host: str = ""
    description: str = ""
    options: str = "noallwrite noclobber nocompress unlocked nomodtime normdir"
    submit_options: str = "submitunchanged"
    line_end: str = "local"
    stream: str = ""
    type: str = ""
    view: tuple[str, ...] = ()
    server_id: str = ""
    updated_at: dt.datetime | None = None
    accessed_at: dt.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ListedClient:
    """What a listing says of a client. `type` is "" or such as "readonly"."""

    name: str
    owner: str
    host: str
    type: str
    description: str
    is_locked: bool
    updated_at: dt.datetime | None
    accessed_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class HaveList:
    """Count and digest of what the server believes a client has.

    `digest` is the SHA-256 (hex) of the sorted lines "depotFile#rev\n". It is equal for
    two clients if and only if they have the same revisions of the same files.
    """

    count: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class FlushPlace:
    """How far flushes of a client, directory by directory, have come.

    `of` is the SHA-256 (hex) of the directories in their order: `done` says of these
    alone how many are flushed.
    """

    of: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class FlushWatch:
    """Where a flush in batches begins, and what it tells after each command.

    `place` is what an earlier attempt has told: its directories are not flushed again.
    `on_place` gets the place reached. Then `on_command` gets the table for which the
    command waited longest, None if the server does not report it. It returns whether
    others wait: then fewer directories share a command. It may take its time, in which
    others get the locks, and may raise to end the flush.
    """

    on_command: Callable[[LockUse | None], bool]
    on_place: Callable[[FlushPlace], object] = lambda _: None
    place: FlushPlace | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """A depot path that is at another change than the rest of a client."""

    path: str
    change: int


class SyncPhase(StrEnum):
    """PLANNING until the record of the first file, FINISHING from that of the last."""

    PLANNING = "planning"
    RECEIVING = "receiving"
    FINISHING = "finishing"


@dataclass(frozen=True, kw_only=True)
class SyncProgress:
    """What has arrived so far.

    A total is 0 while it is unknown: until the server reports it, and while further
    commands follow.
    """

    phase: SyncPhase
    files: int
    files_total: int
    bytes: int
    bytes_total: int


@dataclass(frozen=True, kw_only=True)
class TreeSize:
    """What a client's view holds at a change."""

    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PopulateReport:
    """How many files were written and removed to bring a clone to another change."""

    written: int
    removed: int


@dataclass(frozen=True, kw_only=True)
class OpenedFile:
    """`change` is a number or "default". `client_file` is //client/... or "".

    `revision` is the one it was opened at, 0 for a new file. `moved_file` is the other
    half of a move, "" for other files. Paths have special characters as %xx, as the
    server sends and expects them.
    """

    depot_file: str
    client_file: str
    action: str
    change: str
    user: str
    client: str
    type: str = ""
    revision: int = 0
    moved_file: str = ""


@dataclass(frozen=True, kw_only=True)
class PendingChange:
    """A pending change. `files` counts opened files, not shelved ones."""

    change: int
    user: str
    client: str
    description: str
    is_shelved: bool
    files: int = 0


@dataclass(frozen=True, kw_only=True)
class SubmittedChange:
    """`title` is the first line of the description; `paths` are depot paths."""

    number: int
    user: str
    submitted_at: dt.datetime
    title: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SubmittedBatch:
    """Submitted changes, and whether their server distinguishes case."""

    changes: tuple[SubmittedChange, ...]
    is_case_sensitive: bool


@dataclass(frozen=True, kw_only=True)
class ShelvedFile:
    """`digest` is the MD5 (hex) of the content as the server stores it, "" if none."""

    depot_file: str
    action: str
    type: str
    revision: int
    size_bytes: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class NotDone:
    """A file that could not be processed, and a sentence that says why."""

    depot_file: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """A shelved change that holds files opened on a client.

    `was` is the pending change in which they were opened, "default" or a number. With
    `made_by_us`, the change exists only for this shelf. `files` are depot paths.
    """

    change: int
    was: str
    files: tuple[str, ...]
    made_by_us: bool


@dataclass(frozen=True, kw_only=True)
class ShelveReport:
    """`moved` maps each change of ours to the change that its files came from.

    The files stay opened in ours: see hosts/inventory.opened_before.
    """

    shelves: tuple[Shelf, ...]
    not_shelved: tuple[NotDone, ...]
    moved: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReopenReport:
    """`changes` maps each pending change that was created again to its new number.

    `opened` are depot paths.
    """

    opened: tuple[str, ...]
    not_opened: tuple[NotDone, ...]
    changes: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class CopyReport:
    """`shelves` belong to the stand-in; each names the change it was copied from."""

    shelves: tuple[Shelf, ...]
    not_copied: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class OpenReport:
    """What was opened from shelves.

    `changes` maps each old change to its replacement. `put_aside` has pairs of old and
    new local paths, for files that were in the way of new ones.
    """

    changes: dict[str, str]
    put_aside: tuple[tuple[str, str], ...]
    not_opened: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class ToResolve:
    """An opened file that a person must resolve with a submitted revision."""

    depot_file: str
    path: str
    from_revision: str


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """`merged` are depot paths that were merged without a conflict.

    `changed` are files with a newer revision that cannot be merged, as they are opened
    for delete or move. `gone` are files that were deleted in the depot. Both map depot
    paths to the change they were compared with.
    """

    merged: tuple[str, ...]
    to_resolve: tuple[ToResolve, ...]
    changed: Mapping[str, int]
    gone: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ReconcileFinding:
    """A file that differs from the have list.

    `action` is "edit" (changed, not opened), "delete" (missing) or "add" (untracked).
    `path` is in local syntax.
    """

    action: str
    depot_file: str
    path: str


@dataclass(frozen=True, kw_only=True)
class NewestWork:
    """When a client's newest change of each kind was made, None if there is none.

    A shelved change has the time at which its pending change was last saved.
    """

    submitted_at: dt.datetime | None
    shelved_at: dt.datetime | None
    pending_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class ViewSurvey:
    """What a view holds now. `size_bytes` counts files that several lines map twice.

    `depot_files` is the number of files in all depots of the view. `clashes` are the
    first twenty pairs of names on disk that differ only in case. With too many files
    names are not compared, and `files` counts files that several lines map twice, too.
    """

    files: int
    size_bytes: int
    depot_files: int
    clashes: tuple[tuple[str, str], ...]
    names_were_compared: bool


@dataclass(frozen=True, kw_only=True)
class LockUse:
    """The server's table for which a command waited longest, and how long."""

    command: str
    table: str
    waited_ms: int
    held_ms: int


@dataclass(frozen=True, kw_only=True)
class ProtectionsSummary:
    """How many lines a server's protections have, and which begin wide.

    `wide` are up to ten paths with a wildcard before the last part of a directory tree,
    such as //.../*.key, and `wide_count` all of them.
    """

    lines: int
    wide_count: int
    wide: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OpenedCounts:
    """How many files a client has opened, and locked or opened exclusively."""

    opened: int = 0
    locked: int = 0


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A process of a Perforce server, as p4 monitor shows it.

    `number` is its session's, used again later. `state` is one of R (running), T
    (marked for termination), P (paused), B (in the background), F (finishing) and I
    (idle). `seconds` counts from the start of its present command.
    """

    number: int
    state: str
    user: str
    program: str
    client: str
    host: str
    command: str
    arguments: str
    seconds: int
