"""What a Perforce server's log tells: commands, errors and messages of the server.

Times are seconds since 1970 by the server's own clock: the log says no time zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

# Those of a `TableUse` as the log tells them: digits, or None where it tells nothing.
Numbers: TypeAlias = Sequence[bytes | int | None]


class TableUse(NamedTuple):
    """What one command did to one table, or to one kind of entity lock.

    Waits and holds are milliseconds, of all its locks together and of its longest.
    """

    pages_in: int = 0
    pages_out: int = 0
    pages_cached: int = 0
    read_locks: int = 0
    write_locks: int = 0
    rows_got: int = 0
    rows_positioned: int = 0
    rows_scanned: int = 0
    rows_put: int = 0
    rows_deleted: int = 0
    read_wait_ms: int = 0
    read_held_ms: int = 0
    write_wait_ms: int = 0
    write_held_ms: int = 0
    max_read_wait_ms: int = 0
    max_read_held_ms: int = 0
    max_write_wait_ms: int = 0
    max_write_held_ms: int = 0
    peeks: int = 0
    peek_wait_ms: int = 0
    peek_held_ms: int = 0

    @classmethod
    def of(cls, numbers: Numbers) -> TableUse:
        return cls._make(int(number or 0) for number in numbers)


@dataclass(slots=True, eq=False)
class LoggedCommand:
    """A command of a Perforce server.

    `offset` is the byte of the log where the first block that tells of it begins.
    `ended` is None until the log says when it ended. Lapses are seconds. Sizes are
    mebibytes where the log rounds to them, else bytes. `estimated_*` is what the server
    estimated of a sync, which may be that of another sync at the same moment. What is
    not UTF-8 is written as `storable` does. `uses` of tables are numbers once somebody
    asks for `tables`: there are many, of which few are looked at. `is_left_open`: it
    had not ended where another file did, and whether it ends in this one is seen by its
    lapse. `stored` is what was stored of it then.
    """

    offset: int
    pid: int
    started: int
    user: str
    client: str
    host: str
    program: str
    command: str
    arguments: str
    ended: int | None = None
    lapse: float = 0.0
    compute_lapse: float = 0.0
    paused: float = 0.0
    has_failed: bool = False
    is_completed: bool = False
    is_tracked: bool = False
    user_cpu_ms: int = 0
    system_cpu_ms: int = 0
    blocks_read: int = 0
    blocks_written: int = 0
    messages_in: int = 0
    messages_out: int = 0
    max_rss_kb: int = 0
    page_faults: int = 0
    memory_mb: int = 0
    peak_memory_mb: int = 0
    rpc_messages_in: int = 0
    rpc_messages_out: int = 0
    rpc_in_mb: int = 0
    rpc_out_mb: int = 0
    rpc_send_wait: float = 0.0
    rpc_receive_wait: float = 0.0
    files_sent: int = 0
    sent_mb: int = 0
    files_received: int = 0
    received_mb: int = 0
    archive_read_bytes: int = 0
    archive_written_bytes: int = 0
    estimated_files_added: int = 0
    estimated_files_updated: int = 0
    estimated_files_deleted: int = 0
    estimated_bytes_added: int = 0
    estimated_bytes_updated: int = 0
    uses: dict[str, Numbers] = field(default_factory=dict)
    triggers: dict[str, float] = field(default_factory=dict)
    is_left_open: bool = False
    stored: Stored | None = None

    @property
    def tables(self) -> dict[str, TableUse]:
        """What the command did to each table."""
        return {name: TableUse.of(use) for name, use in self.uses.items()}


@dataclass(slots=True, frozen=True)
class Stored:
    """What was stored of a command before it ended, and what it counts as.

    `number` is that of its row, None if its day was not kept.
    """

    number: int | None
    origin: str
    before: LoggedCommand


class LooseEnd(NamedTuple):
    """The end of a command whose beginning was not read, as the log tells it.

    `lapse` is in seconds, and `usage` what the process used, "" if that is not told.
    """

    pid: int
    ended: int
    lapse: float
    usage: str


class MessageKind(StrEnum):
    ERROR = "error"
    THREADS = "threads"
    PAUSED_THREADS = "paused"
    PRESSURE = "pressure"
    OTHER = "other"


@dataclass(slots=True, frozen=True)
class LogMessage:
    """An error, a message of the server about itself, or another line.

    Other lines are torn ones too. `at` is when the block before them was written.
    """

    offset: int
    kind: MessageKind
    at: int
    text: str
    pid: int | None = None
    operation: str = ""


Record: TypeAlias = LoggedCommand | LogMessage


@dataclass(slots=True)
class ReadCounts:
    """How much of a log was read, and what was odd about it."""

    commands: int = 0
    errors: int = 0
    other_lines: int = 0
    not_utf8: int = 0
    ends_without_start: int = 0
    clock_jumps: int = 0
