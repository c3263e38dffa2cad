"""Follow the log of a Perforce server on its host, through rotation and compression.

A file is known by its first bytes: a log that was renamed or compressed has them still.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import structlog
from django.db import transaction

from provisioner.lib import clocks
from provisioner.server_log.models import ServerLog
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.records import ReadCounts, Record
from provisioner.server_log.refusals import NotAServerLog
from provisioner.server_log.storing import commands_of, state_of, store

log_of_ours = structlog.get_logger(__name__)

_HEAD_BYTES = 256
_CHUNK = 1 << 20
_CHUNKS_AT_A_TIME = 8
# The last block of a file that nobody writes to has ended.
_QUIET_AFTER_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class _File:
    path: Path
    head: str
    names_perforce: bool = False

    def opened(self) -> BinaryIO:
        if self.path.suffix == ".gz":
            return cast(BinaryIO, gzip.open(self.path))
        return self.path.open("rb")


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
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        trouble = f"{log.path} cannot be read: {reason}."
    ServerLog.objects.filter(pk=log.pk).update(
        trouble=trouble, read_at=clocks.database_now()
    )
    if trouble:
        log_of_ours.warning("server_log_not_read", log_id=log.pk, trouble=trouble)


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
        (each for each in path.parent.glob(f"{path.name}?*") if each.is_file()),
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
    with _File(path=path, head="").opened() as opened:
        head = opened.read(_HEAD_BYTES)
    if len(head) < _HEAD_BYTES:
        return None
    return _File(
        path=path,
        head=hashlib.sha256(head).hexdigest(),
        names_perforce=b"Perforce " in head,
    )


def _read_file(log: ServerLog, file: _File, *, is_last: bool, until: float) -> None:
    with file.opened() as opened:
        if file.head != log.head:
            # What had begun when the file before it ended may end in this one.
            _save(log, file.head, 0, LogParser(running=commands_of(log.running)), [])
        elif is_last and os.fstat(opened.fileno()).st_size < log.offset:
            log.gaps += 1
            _save(log, file.head, 0, LogParser(), [])
        parser = LogParser(offset=log.offset, running=commands_of(log.running))
        opened.seek(log.offset)
        is_over = False
        while not is_over and time.monotonic() < until:
            records, is_over = _next_records(opened, parser)
            if is_over and (not is_last or _is_quiet(opened)):
                records += parser.close_block()
            if is_last:
                log.behind_bytes = os.fstat(opened.fileno()).st_size - parser.resume_at
            if not _save(log, file.head, parser.resume_at, parser, records):
                break


def _next_records(opened: BinaryIO, parser: LogParser) -> tuple[list[Record], bool]:
    """Return the records of the next pieces, and whether the file ends with them."""
    records: list[Record] = []
    for _ in range(_CHUNKS_AT_A_TIME):
        data = opened.read(_CHUNK)
        if not data:
            return records, True
        records += parser.feed(data)
    return records, False


def _is_quiet(opened: BinaryIO) -> bool:
    return time.time() - os.fstat(opened.fileno()).st_mtime > _QUIET_AFTER_SECONDS


def _save(
    log: ServerLog, head: str, offset: int, parser: LogParser, records: list[Record]
) -> bool:
    """Store records, with how far their log was read; False if another one did that."""
    counts, parser.counts = parser.counts, ReadCounts()
    with transaction.atomic():
        now = ServerLog.objects.select_for_update().get(pk=log.pk)
        if (now.head, now.offset) != (log.head, log.offset):
            return False
        store(now, records, counts)
        log.head, log.offset, log.running = head, offset, state_of(parser.running)
        log.save(update_fields=("head", "offset", "running", "behind_bytes", "gaps"))
    return True
