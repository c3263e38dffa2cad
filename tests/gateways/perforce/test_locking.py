"""What servers print of locks: the longest wait for a table, and nothing invented."""

from __future__ import annotations

import pytest

from provisioner.gateways.perforce.locking import lock_use
from provisioner.gateways.perforce.types import LockUse

# As the library hands it on, without the dashes of the log.
TRACKED = [
    "lapse 1.31s",
    "usage 10+11us 12+13io 14+15net 4088k 0pf",
    "clients/alice%20ws(W)",
    "  total lock wait+held read/write 0ms+0ms/9000ms+1ms",
    "db.rev",
    "  locks read/write 1/0 rows get+pos+scan put+del 0+1+20 0+0",
    "  total lock wait+held read/write 2ms+30ms/0ms+0ms",
    "db.have",
    "  pages in+out+cached 4+6+3",
    "  locks read/write 0/1 rows get+pos+scan put+del 0+0+0 20+0",
    "  total lock wait+held read/write 0ms+0ms/1200ms+-40ms",
    "  max lock wait+held read/write 0ms+0ms/1200ms+0ms",
    "meta/db(R)",
    "  total lock wait+held read/write 7000ms+0ms/0ms+0ms",
]
LONGEST = LockUse(command="sync -k", table="db.have", waited_ms=1200, held_ms=0)


def in_the_log(line: str) -> str:
    """Return a line as the server's log has it."""
    return f"--- {line}"


def test_it_is_the_table_that_was_waited_for_longest() -> None:
    assert lock_use("sync -k", TRACKED) == LONGEST
    assert lock_use("sync -k", map(in_the_log, TRACKED)) == LONGEST


@pytest.mark.parametrize(
    "lines",
    [
        [],
        TRACKED[:4],
        ["db.have", "  total lock waits 5ms"],
        ["  total lock wait+held read/write 1ms+1ms/1ms+1ms"],
        ["db.have", "", "  total lock wait+held read/write 5"],
    ],
)
def test_what_is_not_understood_is_left_out(lines: list[str]) -> None:
    assert lock_use("sync -k", lines) is None
