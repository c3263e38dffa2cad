"""What goes in and comes out of the Perforce gateway: frozen, no raw dicts."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PerforceAccount:
    """Which server, as whom. `password` may be a password or a ticket.

    `fingerprint` is the pinned fingerprint of an `ssl:` port, "" for others.
    `charset` is P4CHARSET, "none" for a server that is not in unicode mode.
    `timeout_seconds` is how long connecting, and a command of a fixed size, may take;
    `bulk_timeout_seconds` how long the server may be silent in one whose work grows
    with the number of files (a big flush may say nothing for minutes).
    """

    port: str
    user: str
    password: str = field(repr=False)
    charset: str = "none"
    fingerprint: str = ""
    timeout_seconds: float = 60.0
    bulk_timeout_seconds: float = 3600.0


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
    """A client spec. `view` lines are "//depot/path/... //client/..." as in the form.

    `host` "" lets any host use it. `options` is the six or seven words of the form.
    `updated_at` and `accessed_at` are None for a spec that is being made.
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
class SyncProgress:
    """`files_total` and `bytes_total` are 0 until the server has said them."""

    files: int
    files_total: int
    bytes: int
    bytes_total: int


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class OpenedFile:
    """`change` is a number or "default". `client_file` is //client/... or ""."""

    depot_file: str
    client_file: str
    action: str
    change: str
    user: str
    client: str


@dataclass(frozen=True, kw_only=True)
class PendingChange:
    change: int
    user: str
    client: str
    description: str
    is_shelved: bool


@dataclass(frozen=True, kw_only=True)
class ReconcileFinding:
    """A file that differs from the have list.

    `action` is "edit" (changed, not opened), "delete" (missing) or "add" (untracked).
    `path` is local syntax.
    """

    action: str
    depot_file: str
    path: str
