"""The log of a Perforce server, read in pieces of any size."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.server_log.parsing import LARGEST_BLOCK, LogParser
from provisioner.server_log.records import LoggedCommand, LogMessage, Record, TableUse
from provisioner.server_log.refusals import NotAServerLog
from tests.server_log.logs import (
    MIXED,
    PRESSURE,
    SYNC,
    THREADS,
    end,
    info,
    start,
    whole,
)

NINE = int(dt.datetime(2026, 11, 23, 9, tzinfo=dt.UTC).timestamp())


def _read(log: str) -> list[Record]:
    parser = LogParser()
    return parser.feed(os.fsencode(log)) + parser.finish()


def _commands(log: str) -> list[LoggedCommand]:
    return [each for each in _read(log) if isinstance(each, LoggedCommand)]


def _facts(records: list[Record]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(record) for record in records]


def test_a_sync_is_read_with_all_that_it_used() -> None:
    [command] = _commands(SYNC)
    facts = dataclasses.asdict(command)
    del facts["uses"]
    assert {name: fact for name, fact in facts.items() if fact} == {
        "pid": 410,
        "started": NINE,
        "ended": NINE + 1,
        "user": "ann",
        "client": "ann-main",
        "host": "10.5.7.21",
        "program": "p4/2025.1/LINUX26X86_64/2700001",
        "command": "user-sync",
        "arguments": "-q //depot/main/...",
        "lapse": 8.39,
        "paused": 1.2,
        "is_completed": True,
        "is_tracked": True,
        "user_cpu_ms": 598,
        "system_cpu_ms": 67,
        "blocks_read": 304,
        "blocks_written": 5,
        "messages_in": 1,
        "messages_out": 2,
        "max_rss_kb": 68864,
        "page_faults": 3,
        "memory_mb": 74,
        "peak_memory_mb": 80,
        "rpc_messages_in": 2,
        "rpc_messages_out": 84225,
        "rpc_in_mb": 1,
        "rpc_out_mb": 45,
        "rpc_send_wait": 5.6,
        "rpc_receive_wait": 0.02,
        "files_sent": 25,
        "sent_mb": 1862,
        "files_received": 1,
        "received_mb": 2,
        "archive_read_bytes": 1536,
        "archive_written_bytes": 20,
    }
    tables = command.tables
    assert tables["db.have"] == TableUse(
        *(14, 6, 2, 4, 5, 7, 8, 9, 2, 1, 10, 20, 30, 40, 1, 2, 3, 4, 6, 7, 8)
    )
    # Each client has locks of its own; what counts is their kind.
    assert tables["clients"].write_held_ms == 1367
    assert tables["clients"].read_wait_ms == 5
    assert tables["meta/db"].read_held_ms == 31


def test_errors_triggers_and_messages_of_the_server_fall_between() -> None:
    records = _read(MIXED)
    messages = [each for each in records if isinstance(each, LogMessage)]
    assert [(each.kind, each.pid, each.operation) for each in messages] == [
        ("error", 77, "user-resolved"),
        ("threads", 24961, ""),
        ("pressure", 24961, ""),
    ]
    assert messages[0].text == "/home/ann/ws/... - no file(s) resolved."
    commands = [each for each in records if isinstance(each, LoggedCommand)]
    assert [(each.pid, each.command) for each in commands] == [
        (410, "user-sync"),
        (77, "user-resolved"),
        (78, "user-change"),
        (79, "user-info"),
        (79, "user-files"),
    ]
    assert commands[1].has_failed
    assert commands[2].triggers == {"swarm.change": 0.044}
    assert commands[4].arguments == "//caf\\xe9/..."
    assert commands[4].ended is None


def test_a_message_inside_a_block_does_not_end_it() -> None:
    torn = SYNC.replace("--- db.have\n", f"{THREADS}--- db.have\n{PRESSURE}")
    [command] = _commands(torn)
    assert command.tables["db.have"].write_held_ms == 40


def test_a_process_id_used_again_is_another_command() -> None:
    same = whole(5, "user-info", second=3) + whole(5, "user-info", second=3)
    other = info(start(6, "user-login -s", second=7)) + whole(6, "user-have", second=7)
    names = [(each.pid, each.command) for each in _commands(same + other)]
    assert sorted(names) == [
        (5, "user-info"),
        (5, "user-info"),
        (6, "user-have"),
        (6, "user-login"),
    ]


def test_what_a_command_used_is_told_some_seconds_late() -> None:
    begin = start(5, "user-info")
    late = info(begin, "--- lapse .5s", "--- usage 9+1us 0+0io 0+0net 1k 0pf")
    next_of_it = info(start(5, "user-have", second=2))
    commands = _commands(info(begin) + info(end(5, ".5")) + next_of_it + late)
    assert [(each.command, each.user_cpu_ms) for each in commands] == [
        ("user-info", 9),
        ("user-have", 0),
    ]


def test_replication_is_told_without_an_end() -> None:
    pull = start(9, "pull -i 1"), "--- rdb.lbr", "---   pages in+out+cached 7+4+2"
    commands = _commands(info(*pull) + info(*pull))
    assert [each.tables["rdb.lbr"].pages_in for each in commands] == [7, 7]
    assert {each.ended for each in commands} == {None}


def test_of_arguments_with_several_lines_the_first_is_kept() -> None:
    begin = (
        "\t2026/11/23 09:00:00 pid 8 ann@a 10.1.1.1 [p4] 'user-submit -d one\n\ntwo'"
    )
    [command] = _commands(info(begin) + info(end(8, ".1")))
    assert command.arguments == "-d one"


def test_torn_lines_are_kept_and_counted() -> None:
    parser = LogParser()
    torn = "\t2026/11/23 09:00:00 pid 4 comPerforce server info:\n"
    log = info(torn.rstrip("\n"), start(4, "user-info")) + info(end(3, "1"))
    records = parser.feed(log.encode()) + parser.finish()
    message, command = records
    assert isinstance(message, LogMessage)
    assert message.text == torn.rstrip("\n")
    assert isinstance(command, LoggedCommand)
    assert parser.counts.other_lines == 1
    assert parser.counts.ends_without_start == 1


def test_a_clock_that_is_set_back_is_counted_and_holds_nothing_up() -> None:
    later = info(start(1, "user-info", second=30)) + info(end(1, "1", second=31))
    earlier = later.replace("09:00", "07:59").replace("pid 1", "pid 2")
    parser = LogParser()
    parser.feed((later + earlier + info(start(3, "user-have")) * 2).encode())
    assert parser.counts.clock_jumps == 1
    assert parser.counts.commands == 2


def test_lines_end_as_on_windows() -> None:
    assert _facts(_read(SYNC.replace("\n", "\r\n"))) == _facts(_read(SYNC))


def test_the_log_of_another_program_is_refused() -> None:
    parser = LogParser()
    parser.feed(b"[info] started\n")
    with pytest.raises(NotAServerLog):
        parser.finish()
    with pytest.raises(NotAServerLog):
        LogParser().feed(b"x" * 2 * 2**20)


def test_a_block_without_end_takes_no_more_memory_than_the_largest() -> None:
    parser = LogParser()
    parser.feed(info(start(1, "user-info")).encode())
    for _ in range(3):
        parser.feed(b"y" * (LARGEST_BLOCK // 2 + 1))
    assert parser.resume_at > LARGEST_BLOCK
    records = parser.feed(b"\n" + os.fsencode(SYNC)) + parser.finish()
    assert [each.pid for each in records if isinstance(each, LoggedCommand)] == [410, 1]


@given(cuts=st.lists(st.integers(0, len(os.fsencode(MIXED))), max_size=6))
def test_it_does_not_matter_where_the_log_is_cut(cuts: list[int]) -> None:
    log = os.fsencode(MIXED)
    parser, records, at = LogParser(), [], 0
    for cut in [*sorted(cuts), len(log)]:
        records += parser.feed(log[at:cut])
        at = cut
    assert _facts(records + parser.finish()) == _facts(_read(MIXED))


@given(cut=st.integers(0, len(os.fsencode(MIXED))))
def test_another_parser_goes_on_where_one_stopped(cut: int) -> None:
    log = os.fsencode(MIXED)
    first = LogParser()
    records = first.feed(log[:cut])
    second = LogParser(offset=first.resume_at, running=first.running)
    records += second.feed(log[first.resume_at :]) + second.finish()
    whole_log = _facts(_read(MIXED))
    assert sorted(map(str, _facts(records))) == sorted(map(str, whole_log))


@given(
    lines=st.lists(
        st.one_of(
            st.sampled_from(os.fsencode(MIXED).splitlines(keepends=True)),
            st.binary(max_size=40),
        ),
        max_size=40,
    )
)
def test_no_log_breaks_the_parser(lines: list[bytes]) -> None:
    parser = LogParser()
    log = b"Perforce server info:\n" + b"".join(lines)
    records = parser.feed(log) + parser.finish()
    commands = [each for each in records if isinstance(each, LoggedCommand)]
    assert parser.counts.commands == len(commands)
    assert parser.running == []
