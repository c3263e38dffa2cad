"""What goes in and comes out of the Perforce gateway: frozen, no raw dicts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

TICKET = re.compile(r"[0-9A-Fa-f]{32,}")


@dataclass(frozen=True, kw_only=True)
class PerforceAccount:
    """Which server, as whom. `password` may be a password or a ticket.

    `fingerprint` is the pinned fingerprint of an `ssl:` port, "" for others.
    `charset` is P4CHARSET, "none" for a server that is not in unicode mode.
    `timeout_seconds` is how long connecting, and a command of a fixed size, may take;
    `bulk_timeout_seconds` how long the server may be silent in one whose work grows
    with the number of files (a big flush may say nothing for minutes). `host` is the
    name to give for this host, for clients whose Host their owner has set.
    `sync_connections` is how many connections to ask for in a template's sync; 0 leaves
    that to the server.
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
        """Whether `password` is a ticket, which only a person can renew."""
        return TICKET.fullmatch(self.password) is not None


@dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """`p4 info`, as far as Cloneyard asks."""

    version: str
    is_case_sensitive: bool
    is_unicode: bool
    server_id: str
    services: str


@dataclass(frozen=True, kw_only=True)
class ClientSpec:
    r"""A client spec. `view` lines are "//depot/path/... //client/..." as in the form.

    `host` "" lets any host use it. `options` is the six or seven words of the form.
    `updated_at` and `accessed_at` are None for a spec that is being made. `server_id`
    is the edge server that alone may use it, and is the server's to set. Bytes of the
    description that are not UTF-8 are written as \xe9; names have them as os.fsdecode.
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
class HaveList:
    """What the server believes a client has, as a number and a fingerprint.

    `digest` is the SHA-256 (hex) over the sorted lines "depotFile#rev\n": equal for
    two clients exactly if they have the same revisions of the same files.
    """

    count: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A depot path whose files are at another change than the rest of a client."""

    path: str
    change: int


class SyncPhase(StrEnum):
    """PLANNING until the server says the first file; FINISHING from the last one on."""

    PLANNING = "planning"
    RECEIVING = "receiving"
    FINISHING = "finishing"


@dataclass(frozen=True, kw_only=True)
class SyncProgress:
    """What has arrived. The totals are 0 while nobody knows them: until the server has
    said them, and where more commands are to come.
    """

    phase: SyncPhase
    files: int
    files_total: int
    bytes: int
    bytes_total: int


@dataclass(frozen=True, kw_only=True)
class TreeSize:
    """How much a client's view has at a change."""

    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PopulateReport:
    """What bringing a clone to another change did: files written, files removed."""

    written: int
    removed: int


@dataclass(frozen=True, kw_only=True)
class OpenedFile:
    """`change` is a number or "default". `client_file` is //client/... or "".

    `revision` is the one it was opened at, 0 for files that are new. `moved_file` is
    the other half of a move, "" for all other files. Paths have special characters
    written as %xx, as the server gives and takes them.
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
    """`files` counts what is opened in it; what is shelved in it is another matter."""

    change: int
    user: str
    client: str
    description: str
    is_shelved: bool
    files: int = 0


@dataclass(frozen=True, kw_only=True)
class SubmittedChange:
    """`title` is the first line of its description; `paths` are depot paths."""

    number: int
    user: str
    submitted_at: dt.datetime
    title: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SubmittedBatch:
    """Some submitted changes, and how their server compares names."""

    changes: tuple[SubmittedChange, ...]
    is_case_sensitive: bool


@dataclass(frozen=True, kw_only=True)
class ShelvedFile:
    """`digest` is an MD5 in hex, of the content as the server keeps it; "" for none."""

    depot_file: str
    action: str
    type: str
    revision: int
    size_bytes: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class NotDone:
    """A file for which a verb could not do its work, with a sentence that says why."""

    depot_file: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """A shelved change that holds files which are opened on a client.

    `was` is the pending change they were opened in, "default" or a number;
    `made_by_us` says that the change exists for the shelf alone. `files` are depot
    paths.
    """

    change: int
    was: str
    files: tuple[str, ...]
    made_by_us: bool


@dataclass(frozen=True, kw_only=True)
class ShelveReport:
    """`moved` gives, for each change of ours, the one that its files were opened in.

    They stay opened in ours: see hosts/inventory.opened_before.
    """

    shelves: tuple[Shelf, ...]
    not_shelved: tuple[NotDone, ...]
    moved: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReopenReport:
    """`changes` gives the new number for each pending change that had to be made anew.

    `opened` are depot paths.
    """

    opened: tuple[str, ...]
    not_opened: tuple[NotDone, ...]
    changes: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class CopyReport:
    """`shelves` name the changes that files were opened in; they are the stand-in's."""

    shelves: tuple[Shelf, ...]
    not_copied: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class OpenReport:
    """What came out of shelves.

    `changes` gives the change that stands for each old one. `put_aside` has [path,
    new path], local syntax, of what lay where a new file belongs.
    """

    changes: dict[str, str]
    put_aside: tuple[tuple[str, str], ...]
    not_opened: tuple[NotDone, ...]


@dataclass(frozen=True, kw_only=True)
class ToResolve:
    """A file that a person has to bring together with what others did to it."""

    depot_file: str
    path: str
    from_file: str
    from_revision: str


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """`merged` are depot paths that were brought together without a conflict.

    `changed` have another revision than the one they are opened at, and cannot be
    merged, as they are deleted or moved here; `gone` are deleted there: both by path
    the change that they were compared at.
    """

    merged: tuple[str, ...]
    to_resolve: tuple[ToResolve, ...]
    changed: Mapping[str, int]
    gone: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ReconcileFinding:
    """A file that differs from the have list.

    `action` is "edit" (changed, not opened), "delete" (missing) or "add" (untracked).
    `path` is local syntax.
    """

    action: str
    depot_file: str
    path: str


@dataclass(frozen=True, kw_only=True)
class NewestWork:
    """When a client's newest changes were made, None where there is none.

    A shelved change has the time of its pending change: when it was last saved.
    """

    submitted_at: dt.datetime | None
    shelved_at: dt.datetime | None
    pending_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class ViewSurvey:
    """What a view holds now. `size_bytes` counts what its lines share more than once.

    `depot_files` is how many files all of its depots hold. `clashes` are pairs of
    names on disk that differ in case alone, the first twenty; with too many files,
    names are not compared, and `files` counts what lines share more than once.
    """

    files: int
    size_bytes: int
    depot_files: int
    clashes: tuple[tuple[str, str], ...]
    names_were_compared: bool


@dataclass(frozen=True, kw_only=True)
class LockUse:
    """The table of the server for which a command waited longest, in milliseconds."""

    command: str
    table: str
    waited_ms: int
    held_ms: int
