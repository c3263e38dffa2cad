"""Follow the log of a Perforce server from afar, by p4 logtail.

A rotated file cannot be read that way: what was written to it after it was read last is
a gap, until the file is uploaded.
"""

from __future__ import annotations

import time

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.errors import NotPermitted
from provisioner.gateways.perforce.log import Log
from provisioner.server_log.following import (
    CHUNK_BYTES,
    CHUNKS_AT_A_TIME,
    HEAD_BYTES,
    begun_before,
    going_on,
    head_of,
    note_reading,
    parser_of,
    read_before,
    save,
)
from provisioner.server_log.models import ServerLog
from provisioner.server_log.refusals import NotAServerLog
from provisioner.server_log.storing import Batch

ANSWER_WITHIN_SECONDS = 20.0
# Each call is in the log itself, so that its end never comes. Servers may tell less at
# a time than they are asked for.
_ENDS_BELOW_BYTES = 1 << 14


def tail(log: ServerLog, *, for_seconds: float) -> None:
    """Read on in a server's log; what cannot be read is its trouble.

    Ends after so many seconds, or when everything is read. Safe to repeat, also at the
    same time: what is stored, and how far it was read, are one transaction.
    """
    until, trouble = time.monotonic() + for_seconds, ""
    try:
        gateway = registry.hasty_perforce(log.server, seconds=ANSWER_WITHIN_SECONDS)
        _read_on(log, gateway.log, until=until)
    except NotPermitted:
        trouble = (
            f"{log.server.p4user} may not run p4 logtail: it needs super or operator "
            "access. Give it that, or run a worker on the server's host."
        )
    except NotAServerLog as refusal:
        trouble = refusal.sentence
    except GatewayError as error:
        trouble = error.sentence
    note_reading(log, trouble=trouble)


def _read_on(log: ServerLog, there: Log, *, until: float) -> None:
    """Store what is new, piece by piece.

    The first bytes are read again after each piece: only if they are the same, all of
    it is of one file.
    """
    head = _head(there)
    if not head:
        return
    if head != log.head:
        log.gaps += bool(log.head)
        parser = parser_of(log, running=begun_before(log))
        if not save(log, head, read_before(log, head), parser):
            return
    parser = going_on(log)
    at, is_over = log.offset, False
    while not is_over and time.monotonic() < until:
        batch = Batch(log)
        for _ in range(CHUNKS_AT_A_TIME):
            piece = there.read(offset=at, at_most=CHUNK_BYTES)
            if piece.next_offset < at:  # emptied, and begun with the same bytes
                log.gaps += 1
                save(log, head, 0, parser_of(log))
                return
            batch.add(parser.feed(piece.data))
            at = piece.next_offset
            is_over = len(piece.data) < _ENDS_BELOW_BYTES
            if is_over or time.monotonic() > until:
                break
        if _head(there) != head:
            return
        if is_over:
            log.behind_bytes = 0
        if not save(log, head, parser.resume_at, parser, batch):
            return


def _head(there: Log) -> str:
    """Return what the log is known by; "" as long as it is nearly empty."""
    first = there.read(offset=0, at_most=HEAD_BYTES).data
    return head_of(first) if len(first) == HEAD_BYTES else ""
