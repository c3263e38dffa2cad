"""What go-libp4dlog reads in its own test data, we read field by field.

GO_LIBP4DLOG names a checkout of rcowham/go-libp4dlog (compared at v0.14.3). Its tests
write down what they read of each log. All differences are named here, with the reason
why ours is what the log says.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.server_log.parsing import LogParser, never_completed
from provisioner.server_log.records import LoggedCommand, TableUse

CHECKOUT = os.environ.get("GO_LIBP4DLOG", "")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not CHECKOUT, reason="GO_LIBP4DLOG names no checkout"),
]

FIELDS = {
    "cmd": "command",
    "user": "user",
    "workspace": "client",
    "ip": "host",
    "app": "program",
    "args": "arguments",
    "computeLapse": "compute_lapse",
    "completedLapse": "lapse",
    "paused": "paused",
    "uCpu": "user_cpu_ms",
    "sCpu": "system_cpu_ms",
    "diskIn": "blocks_read",
    "diskOut": "blocks_written",
    "ipcIn": "messages_in",
    "ipcOut": "messages_out",
    "maxRss": "max_rss_kb",
    "pageFaults": "page_faults",
    "memMB": "memory_mb",
    "memPeakMB": "peak_memory_mb",
    "rpcMsgsIn": "rpc_messages_in",
    "rpcMsgsOut": "rpc_messages_out",
    "rpcSizeIn": "rpc_in_mb",
    "rpcSizeOut": "rpc_out_mb",
    "rpcSnd": "rpc_send_wait",
    "rpcRcv": "rpc_receive_wait",
    "fileTotalsSnd": "files_sent",
    "fileTotalsSndMBytes": "sent_mb",
    "fileTotalsRcv": "files_received",
    "fileTotalsRcvMBytes": "received_mb",
    "netFilesAdded": "estimated_files_added",
    "netFilesUpdated": "estimated_files_updated",
    "netFilesDeleted": "estimated_files_deleted",
    "netBytesAdded": "estimated_bytes_added",
    "netBytesUpdated": "estimated_bytes_updated",
    "cmdError": "has_failed",
}
OF_TABLES = {
    "pagesIn": "pages_in",
    "pagesOut": "pages_out",
    "pagesCached": "pages_cached",
    "readLocks": "read_locks",
    "writeLocks": "write_locks",
    "getRows": "rows_got",
    "posRows": "rows_positioned",
    "scanRows": "rows_scanned",
    "putRows": "rows_put",
    "delRows": "rows_deleted",
    "totalReadWait": "read_wait_ms",
    "totalReadHeld": "read_held_ms",
    "totalWriteWait": "write_wait_ms",
    "totalWriteHeld": "write_held_ms",
    "maxReadWait": "max_read_wait_ms",
    "maxReadHeld": "max_read_held_ms",
    "maxWriteWait": "max_write_wait_ms",
    "maxWriteHeld": "max_write_held_ms",
    "peekCount": "peeks",
    "totalPeekWait": "peek_wait_ms",
    "totalPeekHeld": "peek_held_ms",
}
ARCHIVES = ("lbrRcs", "lbrBinary", "lbrCompress", "lbrUncompress")
# It leaves out locks of these kinds, though the log tells how long they were held.
KINDS_LEFT_OUT = {"meta", "clients", "clientEntity", "label", "replica"}
# Others, by log and process: theirs, and ours.
OTHERS = {
    # The rest of a first line of several, without its space as of those of one line.
    (13, 25568, "args"): (" -d First line", "-d First line"),
    (14, 36276, "args"): (" -d    First line", "-d    First line"),
    # It had completed; a minute later the next command of its connection, Init(),
    # exited unexpectedly.
    (38, 2064774, "cmdError"): (True, False),
    # What the client counted, told in a block of its own; it says these may be useful.
    (44, 93275, "client-Stats"): (None, "client-Stats"),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, list[Any]]]:
    """Each log of its tests, with the commands that it reads there."""
    place = tmp_path_factory.mktemp("go-libp4dlog")
    sources = place / "sources"
    shutil.copytree(CHECKOUT, sources)
    tests = sources / "p4dlog_test.go"
    end = "\treturn output\n"
    text = tests.read_text()
    assert text.count(end) == 1
    writes = (
        "\tnumber++\n"
        '\tname := fmt.Sprintf("%s/%03d", os.Getenv("READ"), number)\n'
        '\tos.WriteFile(name+".log", []byte(input), 0o644)\n'
        '\tread := []byte(strings.Join(output, "\\n"))\n'
        '\tos.WriteFile(name+".json", read, 0o644)\n'
    )
    text = text.replace(end, writes + end).replace("import (", 'import (\n"fmt"\n"os"')
    tests.write_text(f"{text}\nvar number int\n")
    environment = {**os.environ, "READ": str(place), "GOFLAGS": "-mod=mod"}
    subprocess.run(
        ["go", "test", "."], cwd=sources, env=environment, check=True, timeout=280
    )
    return [
        (
            log.read_bytes(),
            [
                told
                for line in log.with_suffix(".json").read_text().splitlines()
                if "cmd" in (told := json.loads(line))
            ],
        )
        for log in sorted(place.glob("*.log"))
    ]


def test_every_field_is_the_same_but_for_these(
    logs: list[tuple[bytes, list[Any]]],
) -> None:
    compared, others = 0, {}
    for number, (text, theirs) in enumerate(logs, 1):
        parser = LogParser()
        records = [*parser.feed(text), *parser.finish()]
        ours = [each for each in records if isinstance(each, LoggedCommand)]
        for told in sorted(theirs, key=lambda each: each["lineNo"]):
            command = _same(told, ours, text)
            ours.remove(command)
            for name, left, right in _fields(told, command):
                compared += 1
                if left != right:
                    others[number, command.pid, name] = left, right
        for left_over in ours:
            key = number, left_over.pid, left_over.command
            others[key] = None, left_over.command

    assert len(logs) == 51
    assert compared > 3_500
    assert others == OTHERS


def _same(told: Any, ours: list[LoggedCommand], text: bytes) -> LoggedCommand:
    """Return our command that begins nearest to where theirs does."""
    began = told["pid"], told["cmd"], _seconds(told["startTime"])
    same = [each for each in ours if (each.pid, each.command, each.started) == began]
    assert same, told
    return min(
        same,
        key=lambda each: abs(text[: each.offset].count(b"\n") + 1 - told["lineNo"]),
    )


def _fields(told: Any, ours: LoggedCommand) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, theirs and ours of each field of a command."""
    for name, name_of_ours in FIELDS.items():
        yield name, _rounded(told[name]), _rounded(getattr(ours, name_of_ours))
    for name, read in (
        ("ReadBytes", ours.archive_read_bytes),
        ("WriteBytes", ours.archive_written_bytes),
    ):
        theirs = sum(told[f"{kind}{name}"] for kind in ARCHIVES)
        yield name, _rounded(float(theirs)), _rounded(float(read))
    if never_completed(ours):
        # Without a lapse the log does not say when: it takes the beginning for the end.
        ended = ours.ended or ours.started
        yield "endTime", _seconds(told["endTime"]), ended
    else:
        yield "endTime", _seconds(told["endTime"]), ours.ended
    triggers, tables = {}, {}
    for each in told["tables"]:
        name = each["tableName"]
        if name.startswith("trigger_"):
            triggers[name.removeprefix("trigger_")] = _rounded(each["triggerLapse"])
        else:
            tables[_table(name)] = each
    yield "triggers", triggers, {n: _rounded(t) for n, t in ours.triggers.items()}
    kept = {
        name: use
        for name, use in ours.tables.items()
        if name.partition("/")[0] not in KINDS_LEFT_OUT
    }
    yield "tables", set(tables), set(kept)
    for name in tables.keys() & kept.keys():
        yield from _numbers_of(name, tables[name], kept[name])


def _numbers_of(
    table: str, told: Any, ours: TableUse
) -> Iterator[tuple[str, Any, Any]]:
    for name, name_of_ours in OF_TABLES.items():
        yield f"{table} {name}", told[name], getattr(ours, name_of_ours)


def _table(name: str) -> str:
    """Return the name that a table has in the log."""
    if name.startswith("storage"):  # storageup/storageup(R) is its storageup_R
        return f"storageup/{name.removesuffix('_R').removesuffix('_W')}"
    return name if name.startswith("rdb.") else f"db.{name}"


def _seconds(time: str) -> int | None:
    if time in ("", "0001/01/01 00:00:00"):
        return None
    moment = dt.datetime.strptime(f"{time}Z", "%Y/%m/%d %H:%M:%S%z")
    return int(moment.timestamp())


def _rounded(value: Any) -> Any:
    """Return a number as exact as the floats of theirs, of four bytes."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
