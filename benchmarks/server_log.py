"""How fast a Perforce server's log is read and stored, on one processor.

Prints a JSON line per figure. The log is made: commands that begin, end and tell what
they used of four to nine tables, as with server=3 and track=1. SERVER_LOG_MB is its
size. It is read alone, then read and stored, each in SERVER_LOG_ROUNDS that alternate:
processor time of this process and of the database's, and the time on the clock.
`ratio` is that of both to reading alone, which holds on a machine that is busy with
other things, too. Run it with `taskset -c 0` to have all of it on one processor.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pages import processor_ms
from shared.places import place_of_its_own

MEGABYTES = int(os.environ.get("SERVER_LOG_MB", "200"))
ROUNDS = int(os.environ.get("SERVER_LOG_ROUNDS", "3"))
CHUNK = 1 << 20
COMMANDS = ("user-sync", "user-fstat", "user-have", "user-opened", "user-client")
TABLES = (
    "have",
    "rev",
    "protect",
    "domain",
    "view",
    "user",
    "group",
    "working",
    "locks",
)
BEGIN = dt.datetime(2026, 11, 2, 8, tzinfo=dt.UTC)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Seconds of this process, of the database's, and on the clock."""

    here: float
    database: float
    clock: float

    @property
    def processor(self) -> float:
        return self.here + self.database


def main() -> None:
    """Write a log, and read it."""
    place_of_its_own("server-log")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from provisioner.lib.garbage import spare_what_is_loaded

    spare_what_is_loaded()  # as workers do
    settings.SERVER_LOG_DAYS = 20_000
    call_command("migrate", verbosity=0)
    with tempfile.TemporaryDirectory(prefix="server-log-") as place:
        path = Path(place) / "log"
        commands = write_log(path, megabytes=MEGABYTES)
        # Nobody writes to it: its last block has ended.
        os.utime(path, (0, 0))
        reading, both = [], []
        for number in range(ROUNDS):
            reading.append(_read(path, commands))
            both.append(_read_and_stored(path, commands, number))
    ratio = statistics.median(
        b.processor / r.processor for r, b in zip(reading, both, strict=True)
    )
    for figure, rounds, limit in (
        ("megabytes read a second", reading, ""),
        ("megabytes read and stored a second", both, ">= 17"),
    ):
        spent = sorted(rounds, key=lambda each: each.processor)[len(rounds) // 2]
        line = {
            "figure": figure,
            "value": round(MEGABYTES / spent.processor, 1),
            "limit": limit,
            "commands_per_second": round(commands / spent.processor),
            "seconds_of_a_gigabyte": {
                "processor": _of_a_gigabyte(spent.processor),
                "here": _of_a_gigabyte(spent.here),
                "database": _of_a_gigabyte(spent.database),
                "clock": _of_a_gigabyte(spent.clock),
            },
            "megabytes": MEGABYTES,
            "processors": len(os.sched_getaffinity(0)),
            "ratio": round(ratio, 2),
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(line))


def _of_a_gigabyte(seconds: float) -> float:
    return round(1024 * seconds / MEGABYTES, 1)


def _read(path: Path, commands: int) -> Spent:
    from provisioner.server_log.parsing import LogParser

    parser, found = LogParser(), 0
    began, clock = time.process_time(), time.perf_counter()
    with path.open("rb") as log:
        while data := log.read(CHUNK):
            found += len(parser.feed(data))
    found += len(parser.finish())
    assert found == commands, (found, commands)
    return Spent(
        here=time.process_time() - began,
        database=0.0,
        clock=time.perf_counter() - clock,
    )


def _read_and_stored(path: Path, commands: int, number: int) -> Spent:
    from provisioner.server_log.following import follow
    from provisioner.server_log.models import LogCommand, ServerLog
    from provisioner.sites.models import PerforceServer

    server = PerforceServer.objects.create(name=f"s{number}", p4port="localhost:1666")
    log = ServerLog.objects.create(server=server, path=str(path))
    began, here, clock = processor_ms(), time.process_time(), time.perf_counter()
    follow(log, for_seconds=3600)
    clock, here = time.perf_counter() - clock, time.process_time() - here
    database = (processor_ms() - began) / 1000 - here
    stored = LogCommand.objects.filter(log=log).count()
    # One of them has not ended, as far as anybody knows.
    assert commands - 25 <= stored <= commands, (stored, commands, log.trouble)
    return Spent(here=here, database=database, clock=clock)


def write_log(path: Path, *, megabytes: int) -> int:
    """Write a log of this size; return how many commands it has."""
    written = commands = 0
    with path.open("wb") as log:
        for block in _commands():
            log.write(block)
            written += len(block)
            commands += 1
            if written >= megabytes << 20:
                break
    return commands


def _commands() -> Iterator[bytes]:
    chosen = random.Random(1)
    number = 0
    while True:
        number += 1
        at = BEGIN + dt.timedelta(seconds=number // 20)
        command = chosen.choice(COMMANDS)
        user = f"user{chosen.randrange(300)}"
        start = (
            f"\t{at:%Y/%m/%d %H:%M:%S} pid {number % 32768} {user}@{user}-main "
            f"10.5.{chosen.randrange(8)}.{chosen.randrange(250)} "
            f"[p4/2024.1/LINUX26X86_64/2611120] "
            f"'{command} -q //depot/main/{number}/...'\n"
        )
        lapse = f"{chosen.expovariate(10):.3f}".lstrip("0")
        use = f"{chosen.randrange(900)}+67us 304+0io 0+0net 68864k 0pf"
        tables = "".join(
            f"--- db.{table}\n---   pages in+out+cached {chosen.randrange(999)}+6+2\n"
            "---   locks read/write 4/0 rows get+pos+scan put+del 7+12+4100 0+0\n"
            "---   total lock wait+held read/write "
            f"0ms+{chosen.randrange(50)}ms/0ms+0ms\n"
            "---   max lock wait+held read/write 0ms+4ms/0ms+0ms\n"
            for table in TABLES[: chosen.randrange(4, 10)]
        )
        yield (
            f"Perforce server info:\n{start}Perforce server info:\n"
            f"\t{at:%Y/%m/%d %H:%M:%S} pid {number % 32768} completed {lapse}s {use}\n"
            f"Perforce server info:\n{start}--- lapse {lapse}s\n--- usage {use}\n"
            "--- memory cmd/proc 74mb/74mb\n--- rpc msgs/size in+out 2+84225/0mb+45mb "
            "himarks 795416/795272 snd/rcv 5.64s/.002s\n--- filetotals (svr) send/recv "
            f"files+bytes {chosen.randrange(40)}+18mb/0+0mb\n{tables}\n"
        ).encode()


if __name__ == "__main__":
    main()
