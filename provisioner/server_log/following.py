"""Follow the log of a Perforce server on its host, through rotation and compression.

A file is known by its first bytes: a log that was renamed or compressed has them still.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import math
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.sizes import size_text
from provisioner.server_log.models import ServerLog
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.records import LoggedCommand, LooseEnd, ReadCounts
from provisioner.server_log.refusals import NotAServerLog
from provisioner.server_log.storing import COUNTED, Batch, commands_of, state_of
from provisioner.sites.models import PerforceServer
from provisioner.web.templatetags.cloneyard import count

log_of_ours = structlog.get_logger(__name__)

HEAD_BYTES = 256
# What a file raises that is not there, or whose compression is broken.
UNREADABLE = (OSError, EOFError, zlib.error)
_GZIP = b"\x1f\x8b"
CHUNK_BYTES = 1 << 20
# Sums of one hour are added to those stored once for so much of a log.
CHUNKS_AT_A_TIME = 128
# Of commands that may end in another file.
MOST_LEFT_OPEN = 2_000
_OF_A_FILE = (
    *("head", "offset", "running", "left_open", "loose_ends", "behind_bytes"),
)
# What tells one who stores that another one did meanwhile.
_READ_TO = ("head", "offset", "left_open", "loose_ends")
# The last block of a file that nobody writes to has ended.
_QUIET_AFTER_SECONDS = 10.0


# Of one, and of several.
ODDITIES = {
    "other_lines": ("line of no known kind", "lines of no known kind"),
    "not_utf8": ("text that is not UTF-8", "texts that are not UTF-8"),
    "ends_without_start": (
        "end of a command whose beginning is not known",
        "ends of commands whose beginning is not known",
    ),
    "clock_jumps": (
        "time that the clock was set back",
        "times that the clock was set back",
    ),
    "misdated": (
        "command dated in the future, not stored",
        "commands dated in the future, not stored",
    ),
    "gaps": ("file gone before it was read", "files gone before they were read"),
}


@dataclass(frozen=True, kw_only=True)
class _File:
    path: Path
    head: str
    names_perforce: bool = False


def opened_log(path: Path) -> BinaryIO:
    """Open a file of a log, compressed by gzip or not.

    Raises: OSError.
    """
    with path.open("rb") as opened:
        is_compressed = opened.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(path)) if is_compressed else path.open("rb")


def follow(log: ServerLog, *, for_seconds: float) -> None:
    """Read on in a server's log on this host; what cannot be read is its trouble.

    Ends after so many seconds, or when everything is read. Safe to repeat, also at the
    same time: what is stored, and how far it was read, are one transaction.
    """
    until = time.monotonic() + for_seconds
    trouble = ""
    try:
        for file, is_last in _files_to_read(log):
            _read_file(log, file, is_last=is_last, until=until)
            if time.monotonic() > until:
                break
    except NotAServerLog as refusal:
        trouble = refusal.sentence
    except UNREADABLE as error:
        trouble = unreadable(log.path, error)
    note_reading(log, trouble=trouble)


def note_reading(log: ServerLog, *, trouble: str) -> None:
    """Save that a log was read just now, or why not."""
    ServerLog.objects.filter(pk=log.pk).update(
        trouble=trouble, read_at=clocks.database_now()
    )
    if trouble:
        log_of_ours.warning("server_log_not_read", log_id=log.pk, trouble=trouble)


def locked_logs() -> QuerySet[ServerLog]:
    """Return logs, each locked by whoever gets it.

    As little as one that stores something can: rows that refer to a log are not kept
    from being saved, as whoever saves them may hold what is needed next.
    """
    return ServerLog.objects.select_for_update(no_key=True)


def keep_file(log: ServerLog) -> None:
    """Save how far the file was read that is not read on."""
    if log.head:
        log.files.update_or_create(head=log.head, defaults={"size": log.offset})


def leave_file(log: ServerLog) -> None:
    """Keep how far the file was read, and read none on; the log is not saved."""
    keep_file(log)
    leave_open(log, [*commands_of(log.left_open), *commands_of(log.running)])
    log.head, log.offset, log.running, log.behind_bytes = "", 0, [], 0


def leave_open(log: ServerLog, commands: Iterable[LoggedCommand]) -> None:
    """Remember commands that may end in another file, the newest ones if too many."""
    newest = sorted(commands, key=lambda each: each.started)[-MOST_LEFT_OPEN:]
    for command in newest:
        command.is_left_open = True
    log.left_open = state_of(newest)


def begun_before(log: ServerLog) -> list[LoggedCommand]:
    """Return what had begun before the file that is read next, and may end in it."""
    left_open = [] if log.head else commands_of(log.left_open)
    return [*left_open, *commands_of(log.running)]


def parser_of(
    log: ServerLog, *, offset: int = 0, running: Iterable[LoggedCommand] = ()
) -> LogParser:
    """Return a parser of a file of a log, which knows what others brought in part."""
    ends = (LooseEnd(*end) for end in log.loose_ends)
    return LogParser(offset=offset, running=running, loose_ends=ends)


def going_on(log: ServerLog) -> LogParser:
    """Return a parser that goes on where the file was read to."""
    return parser_of(log, offset=log.offset, running=commands_of(log.running))


@transaction.atomic
def read_once(
    server: PerforceServer, path: Path, *, name: str = "", at_most: float = math.inf
) -> dict[str, int]:
    """Read a whole file of a server's log, compressed or not; return what it counts.

    All of it is stored, or nothing. Of a file that was read before, in its present
    length or a shorter one, only what is new is read. `name` is what sentences call it,
    and `at_most` how many bytes it may have, uncompressed.

    Raises: InvalidRequest (nothing new, nothing in it, not readable, too long, a file
    that is followed), NotAServerLog.
    """
    name = name or str(path)
    # Between two writes is a while of parsing; the connection ends with the process.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    ServerLog.objects.get_or_create(server=server, defaults={"is_followed": False})
    log = locked_logs().get(server=server)
    before = {name: getattr(log, name) for name in COUNTED}
    try:
        file = _file(path)
        if file is None:
            raise InvalidRequest(f"{name} has less than {HEAD_BYTES} bytes.")
        if file.head == log.head:
            if log.is_followed:
                raise InvalidRequest(f"{name} is already read as it grows.")
            leave_file(log)
            log.save(update_fields=_OF_A_FILE)
        left_open_before = {_name_of(e) for e in log.left_open if e["stored"]}
        since = read_before(log, file.head)
        size = _read_to_its_end(log, file, since=since, at_most=at_most)
    except UNREADABLE as error:
        raise InvalidRequest(unreadable(name, error)) from error
    if size is None:
        most = size_text(int(at_most))
        raise InvalidRequest(f"{name} has more than {most}. Split it.")
    if size <= since:
        raise InvalidRequest(f"{name} was read already: nothing in it is new.")
    log.files.update_or_create(head=file.head, defaults={"size": size})
    log.refresh_from_db()
    counted = {name: getattr(log, name) - before[name] for name in COUNTED}
    if not counted["commands"] and not counted["errors"]:
        raise InvalidRequest(f"{name} has no command and no error.")
    counted["left_open"] = sum(
        each["ended"] is None and _name_of(each) not in left_open_before
        for each in log.left_open
    )
    return counted


def _name_of(command: dict[str, Any]) -> tuple[int, int]:
    """Return what a command that is left open is known by."""
    return command["pid"], command["started"]


def read_text(counts: Mapping[str, int]) -> str:
    """Return how much was read, such as "Read 5 commands and 1 error"."""
    commands = count(counts["commands"], "command", "commands")
    running = f" ({counts['left_open']:,} not ended yet)" if counts["left_open"] else ""
    return f"Read {commands}{running} and {count(counts['errors'], 'error', 'errors')}"


def oddities_in(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return what was odd: its name, and how often, in words."""
    return [
        (name, count(counts[name], *said))
        for name, said in ODDITIES.items()
        if counts.get(name)
    ]


def _read_to_its_end(
    log: ServerLog, file: _File, *, since: int, at_most: float
) -> int | None:
    """Store what a file has after its first bytes; return how many it has in all.

    None if these are too many.
    """
    parser = parser_of(log, offset=since, running=commands_of(log.left_open))
    is_over = False
    with opened_log(file.path) as opened:
        if opened.seek(since) < since or not opened.read(1):
            return since
        opened.seek(since)
        while not is_over:
            batch = Batch(log)
            is_over = _read_piece(opened, parser, batch, until=math.inf)
            if opened.tell() > at_most:
                return None
            if is_over:
                batch.add(parser.close_block())
                known = batch.add_last(parser.finish())
                parser.counts.commands -= known
            counts, parser.counts = parser.counts, ReadCounts()
            batch.save(counts)
        leave_open(log, batch.left_open)
        log.loose_ends = parser.loose_ends
        log.save(update_fields=("left_open", "loose_ends"))
        return opened.tell()


def read_before(log: ServerLog, head: str) -> int:
    """Return up to which byte a file of a log was read that is not read on."""
    known = log.files.filter(head=head).first()
    return known.size if known is not None else 0


def unreadable(path: Path | str, error: Exception) -> str:
    """Return the sentence that a log cannot be read."""
    reason = getattr(error, "strerror", None) or error
    return f"{path} cannot be read: {reason}."


def _files_to_read(log: ServerLog) -> Iterator[tuple[_File, bool]]:
    """Yield the file that was read last, then those that came after it."""
    path = Path(log.path)
    current = _file(path)
    if current is None:
        return
    if not log.head or log.head == current.head:
        yield current, True
        return
    # Oldest first; compression leaves the time as it is.
    others = sorted(
        (
            each
            for each in path.parent.glob(f"{glob.escape(path.name)}?*")
            if each.is_file()
        ),
        key=lambda each: each.stat().st_mtime,
    )
    # Logs of other programs may lie there, too.
    rotated = [
        file
        for each in others
        if (file := _file(each)) is not None
        and (file.names_perforce or file.head == log.head)
    ]
    heads = [file.head for file in rotated]
    if log.head in heads:
        for file in rotated[heads.index(log.head) :]:
            if file.head != current.head:
                yield file, False
    else:
        log.gaps += 1
    yield current, True


def _file(path: Path) -> _File | None:
    """Return a log by its first bytes; None as long as it is empty, or nearly.

    Raises: OSError.
    """
    with opened_log(path) as opened:
        head = opened.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    return _File(path=path, head=head_of(head), names_perforce=b"Perforce " in head)


def head_of(first_bytes: bytes) -> str:
    """Return what a file of a log is known by: the digest of its first HEAD_BYTES."""
    return hashlib.sha256(first_bytes).hexdigest()


def _read_file(log: ServerLog, file: _File, *, is_last: bool, until: float) -> None:
    with opened_log(file.path) as opened:
        if file.head != log.head:
            parser = parser_of(log, running=begun_before(log))
            save(log, file.head, read_before(log, file.head), parser)
        elif is_last and os.fstat(opened.fileno()).st_size < log.offset:
            log.gaps += 1
            save(log, file.head, 0, parser_of(log))
        parser = going_on(log)
        opened.seek(log.offset)
        is_over = False
        while not is_over and time.monotonic() < until:
            batch = Batch(log)
            is_over = _read_piece(opened, parser, batch, until=until)
            if is_over and (not is_last or _is_quiet(opened)):
                batch.add(parser.close_block())
            if is_last:
                log.behind_bytes = os.fstat(opened.fileno()).st_size - parser.resume_at
            if not save(log, file.head, parser.resume_at, parser, batch):
                break


def _read_piece(
    opened: BinaryIO, parser: LogParser, batch: Batch, *, until: float
) -> bool:
    """Read the next piece into a batch; return whether the file ends with it."""
    for _ in range(CHUNKS_AT_A_TIME):
        data = opened.read(CHUNK_BYTES)
        if not data:
            return True
        batch.add(parser.feed(data))
        if time.monotonic() > until:
            break
    return False


def _is_quiet(opened: BinaryIO) -> bool:
    return time.time() - os.fstat(opened.fileno()).st_mtime > _QUIET_AFTER_SECONDS


def save(
    log: ServerLog,
    head: str,
    offset: int,
    parser: LogParser,
    batch: Batch | None = None,
) -> bool:
    """Store a batch, with how far its log was read; False if another one did that.

    Or if an upload brought commands or ends meanwhile: what is read next may be of
    them, so the batch is read again.
    """
    counts, parser.counts = parser.counts, ReadCounts()
    with transaction.atomic():
        now = locked_logs().get(pk=log.pk)
        if any(getattr(now, name) != getattr(log, name) for name in _READ_TO):
            return False
        if batch is not None:
            batch.save(counts)
        if head != log.head:
            keep_file(log)
            log.left_open = log.left_open if log.head else []
        log.head, log.offset, log.running = head, offset, state_of(parser.running)
        log.loose_ends = [list(end) for end in parser.loose_ends]
        log.save(update_fields=(*_OF_A_FILE, "gaps"))
    return True
