"""Who waited for whom."""

from __future__ import annotations

import datetime as dt
from typing import Any

from provisioner.server_log.blocking import TableUse, blocked_of, culprits_of

NINE = dt.datetime(2026, 11, 23, 9, tzinfo=dt.UTC)


def use(number: int, *, begin: float, end: float, **times: Any) -> TableUse:
    """Return the use of db.rev by a command that ran for seconds after nine."""
    table = times.pop("table", "db.rev")
    return TableUse(
        command_id=number,
        table=table,
        user=f"user{number}",
        command="user-sync",
        began=NINE + dt.timedelta(seconds=begin),
        ended=NINE + dt.timedelta(seconds=end),
        **times,
    )


def test_a_read_waits_for_the_write_that_held_the_table_longest_meanwhile() -> None:
    short = use(1, begin=0, end=5, write_held_ms=2_000)
    long = use(2, begin=1, end=9, write_held_ms=6_000)
    reader = use(3, begin=2, end=9, read_wait_ms=5_500)
    of_another_table = use(4, begin=0, end=9, write_held_ms=9_000, table="db.have")

    [blocked] = blocked_of([reader], [short, long, reader, of_another_table])

    assert (blocked.by, blocked.through) == (long, None)


def test_a_read_is_not_held_up_by_a_read() -> None:
    other = use(1, begin=0, end=9, read_held_ms=9_000)
    reader = use(2, begin=1, end=9, read_wait_ms=5_000)

    [blocked] = blocked_of([reader], [other, reader])

    assert blocked.by is None


def test_reads_wait_for_a_long_read_through_the_write_behind_it() -> None:
    long_read = use(1, begin=0, end=40, read_held_ms=40_000)
    write = use(2, begin=5, end=41, write_wait_ms=35_000, write_held_ms=20)
    reads = [use(n, begin=n, end=41, read_wait_ms=1_000 * (40 - n)) for n in (8, 20)]

    blocked = blocked_of([*reads, write], [long_read, write, *reads])

    assert [(each.waiter.command_id, each.by, each.through) for each in blocked] == [
        (2, long_read, None),
        (8, long_read, write),
        (20, long_read, write),
    ]
    [culprit] = culprits_of(blocked)
    assert culprit.wait_ms == 35_000 + 32_000 + 20_000
    assert culprit.users == ["user2", "user20", "user8"]
    assert culprit.longest == write
    assert culprit.is_behind_writes


def test_who_did_not_run_meanwhile_or_held_it_too_shortly_is_not_to_blame() -> None:
    before = use(1, begin=0, end=2, write_held_ms=2_000)
    too_short = use(2, begin=0, end=9, write_held_ms=300)
    writer = use(3, begin=2, end=9, write_wait_ms=5_000)

    [blocked] = blocked_of([writer], [before, too_short, writer])

    assert blocked.by is None
    assert culprits_of([blocked]) == []
