"""How long pages of servers' logs take over 50 million commands of 30 days.

Prints a JSON line per page: p95 of several rounds, and what is over the limit.
Commands, table uses and sums are made by PostgreSQL, in a directory that is gone
afterwards; they take some 30 GB there. SERVER_COMMANDS and SERVER_COMMANDS_ROUNDS
change the numbers. `cpu_ms` is what a request takes of a processor here and in
PostgreSQL on average: on a busy machine it says more than the clock.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import statistics
import time
from typing import Any

from pages import processor_ms, set_up

COMMANDS = int(os.environ.get("SERVER_COMMANDS", "50000000"))
ROUNDS = int(os.environ.get("SERVER_COMMANDS_ROUNDS", "20"))
DAYS = 30
AT_MOST_MS = 150
_CHUNK = 200_000
LOCKS_BY = ("table", "user", "command")
LAPSES = (
    *("", "&whose=ours", "&whose=without-builds", "&server=edge", "&server=none"),
    *("&user=user300", "&command=user-obliterate", "&command=user-sync"),
)
USES = (
    *("", "?days=30", "?days=30&table=db.7", "?days=30&user=user300"),
    *("?days=30&table=db.7&user=user0&command=user-sync", "?days=30&user=nobody"),
    *("?days=30&command=user-obliterate", "?days=30&whose=builds"),
)

# Names are drawn as they are: few of them do most.
_USER = "'user' || floor(600 * power(a, 3))::int"
_CLIENT = "'user' || floor(600 * power(a, 3))::int || '-ws' || floor(5 * b)::int"
_HOST = "'10.5.' || floor(8 * power(a, 3))::int || '.' || floor(250 * b)::int"
_PROGRAM = "'P4V/NTX64/2025.' || floor(60 * power(b, 2))::int"
_COMMAND = (
    "(ARRAY['user-sync','user-fstat','user-have','user-opened','user-changes',"
    "'user-describe','user-client','user-info','user-edit','user-submit',"
    "'user-where','user-files','user-dirs','user-filelog','user-print',"
    "'user-reconcile','user-resolve','user-revert','user-shelve','user-obliterate'"
    "])[1 + floor(20 * power(c, 3))::int]"
)
_ORIGIN = "(ARRAY['people', 'builds', 'ours'])[1 + floor(1.02 * (c + 1))::int]"
_LAPSE = "floor(20 / (0.0001 + power(d, 2)))::bigint"
_INSERT_COMMANDS = f"""
INSERT INTO server_log_logcommand (
    log_id, started_at, ended_at, pid, "user", client, host, program, command,
    arguments, lapse_ms, compute_ms, paused_ms, cpu_ms, wait_ms, held_ms, max_rss_kb,
    rpc_in_mb, rpc_out_mb, files_sent, sent_mb, has_failed, rows_scanned, origin)
SELECT %(log)s, date_trunc('second', at), at, n %% 32768, {_USER}, {_CLIENT}, {_HOST},
    {_PROGRAM}, {_COMMAND}, '-q //depot/main/' || n || '/...', {_LAPSE}, 1, 0,
    floor(40 * d), floor(9 * b), floor(30 * c), 60000, 0, 1, floor(9 * a), 1, d < 0.01,
    floor(1000 / (0.0001 + power(b, 2)))::bigint, {_ORIGIN}
FROM (
    SELECT n, random() a, random() b, random() c, random() d,
        %(begin)s + (n - %(first)s)::float / %(number)s * interval '1 day' AS at
    FROM generate_series(%(first)s, %(last)s) n
) made
"""  # noqa: S608 - ours
_INSERT_USES = """
INSERT INTO server_log_logtableuse (
    log_id, command_id, started_at, ended_at, "user", client, command, origin, "table",
    read_wait_ms, read_held_ms, write_wait_ms, write_held_ms)
SELECT log_id, id, started_at, started_at + lapse_ms * interval '1 ms', "user", client,
    command, origin, 'db.' || id %% 40, id %% 7 * 30, 150, id %% 9 * 20, id %% 301
FROM server_log_logcommand
WHERE started_at >= %(begin)s AND started_at < %(begin)s + interval '1 day'
    AND id %% 20 = 0
"""
_NAMES = {
    "user": (600, "'user' || n"),
    "client": (3000, "'user' || n / 5 || '-ws' || n %% 5"),
    "host": (2000, "'10.5.' || n / 250 || '.' || n %% 250"),
    "program": (60, "'P4V/NTX64/2025.' || n"),
    "command": (60, "'user-c' || n"),
}


def main() -> None:
    """Fill a database, and ask for each page."""
    set_up("server-commands")
    from django.test import Client

    from provisioner.accounts.models import User

    began = time.monotonic()
    fill()
    print(
        json.dumps(
            {"filled": COMMANDS, "seconds": round(time.monotonic() - began), **size()}
        ),
        flush=True,
    )
    browser = Client()
    browser.force_login(
        User.objects.create_superuser("admin", "admin@example.com", "password")
    )
    missed = []
    for path in paths():
        took, worked = [], []
        for _ in range(ROUNDS):
            began, began_work = time.perf_counter(), processor_ms()
            answer = browser.get(path, headers={"host": "testserver"})
            took.append(1000 * (time.perf_counter() - began))
            worked.append(processor_ms() - began_work)
            assert answer.status_code == 200, (path, answer.status_code)
        p95 = sorted(took)[math.ceil(0.95 * len(took)) - 1]
        line = {
            "page": path,
            "median_ms": round(statistics.median(took), 1),
            "p95_ms": round(p95, 1),
            "cpu_ms": round(statistics.fmean(worked), 1),
        }
        print(json.dumps(line), flush=True)
        if p95 > AT_MOST_MS:
            missed.append(line)
    print(
        json.dumps(
            {
                "figure": "pages of logs over a limit",
                "at_most_ms": AT_MOST_MS,
                "misses": missed,
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


def paths() -> list[str]:
    """Return the addresses of the pages, in all looks that have links."""
    commands, load = "/perforce/commands/", "/perforce/load/"
    looks = [
        *("", "?days=30", "?days=30&page=200", "?days=7&at_least=30"),
        *("?days=30&at_least=120", "?days=30&sort=-lapse_ms", "?days=30&server=none"),
        *("?days=30&q=user77", "?days=30&q=nobody", "?q=user-obliterate"),
    ]
    names = {
        "user": ("user0", "user300", "user599", "nobody"),
        "client": ("user300-ws1", "none"),
        "host": ("10.5.3.77",),
        "program": ("P4V/NTX64/2025.59",),
        "command": ("user-sync", "user-obliterate", "user-none"),
    }
    for by, those in names.items():
        for name in those:
            looks += [f"?days=30&{by}={name}", f"?days=30&{by}={name}&sort=-lapse_ms"]
    return [
        *(commands + look for look in looks),
        *(
            f"{load}?days={days}&by={by}"
            for days in (1, 7, 30)
            for by in ("command", "user", "client", "host")
        ),
        f"{load}?days=30&by=client&server=commit&order=wait_ms",
        f"{load}?days=30&by=client&whose=without-builds&order=most_rows",
        *(f"{load}locks/?days={days}&by={by}" for days in (1, 30) for by in LOCKS_BY),
        *(f"{load}waits/?server={name}" for name in ("commit", "none")),
        *(f"{load}uses/{look}" for look in USES),
        *(f"{load}lapses/?days=30{look}" for look in LAPSES),
        f"{load}lapses/",
        f"{load}polling/?days=30",
        f"{commands}?days=30&at_least_rows=1000000",
        f"{commands}?days=30&whose=ours",
        f"{commands}?days=30&has_failed=1&user=user300",
        f"{commands}?days=30&has_failed=1&command=user-sync",
        "/perforce/logs/",
    ]


def fill() -> None:
    """Make the commands of each day, and the sums that they would have."""
    from django.db import connection, transaction

    from provisioner.lib import clocks
    from provisioner.server_log.models import LogCommand, ServerLog
    from provisioner.server_log.partitions import ensure_days
    from provisioner.sites.models import PerforceServer

    today = clocks.database_now().replace(hour=0, minute=0, second=0, microsecond=0)
    logs = [
        ServerLog.objects.create(
            server=PerforceServer.objects.create(name=name, p4port=f"{name}:1666"),
            path="/p4/1/logs/log",
        )
        for name in ("commit", "edge", "none")
    ]
    number = COMMANDS // DAYS
    days = [today - dt.timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]
    with transaction.atomic():
        ensure_days(day.date() for day in days)
        # Nothing of it has to outlive a crash.
        for day in days:
            for name in ("logcommand", "logtableuse", "logmessage"):
                with connection.cursor() as cursor:
                    table = f"server_log_{name}_{day:%Y%m%d}"
                    cursor.execute(f"ALTER TABLE {table} SET UNLOGGED")
    with connection.schema_editor() as editor:
        for each in LogCommand._meta.indexes:
            editor.remove_index(LogCommand, each)
    for index, day in enumerate(days):
        log = logs[index % 10 == 0]
        asked = {"log": log.pk, "begin": day, "number": number}
        with connection.cursor() as cursor:
            for first in range(1, number + 1, _CHUNK):
                # Times of a chunk go on where those of the one before it ended.
                begin = day + dt.timedelta(days=1) * (first - 1) / number
                last = min(first + _CHUNK - 1, number)
                cursor.execute(
                    _INSERT_COMMANDS,
                    {**asked, "begin": begin, "first": first, "last": last},
                )
            cursor.execute(_INSERT_USES, asked)
            # No page reads sums by hour of longer ago.
            _fill_sums(cursor, log.pk, day, by_hour=index >= DAYS - 3)
    with connection.schema_editor() as editor:
        for each in LogCommand._meta.indexes:
            editor.add_index(LogCommand, each)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _fill_sums(cursor: Any, log_id: int, day: dt.datetime, *, by_hour: bool) -> None:
    for by, (names, name) in _NAMES.items():
        for span, hours in (("hour", 24), ("day", 1))[not by_hour :]:
            cursor.execute(
                f"""
                INSERT INTO server_log_logsum (log_id, span, by, at, name, commands,
                    failed, over_30s, over_60s, over_120s, lapse_ms, longest_ms, cpu_ms,
                    wait_ms, held_ms, files_sent, sent_mb, rows_scanned, most_rows,
                    origin)
                SELECT %s, %s, %s, %s + h * interval '1 hour', {name}, 100, 1, 1, 0, 0,
                    9000 * (n %% 97), 31000, 4000, 70, 90, 30, 40, 50, 60,
                    (ARRAY['people', 'builds', 'ours'])[1 + n %% 3]
                FROM generate_series(0, %s) h, generate_series(0, %s) n
                """,  # noqa: S608 - ours
                [log_id, span, by, day, hours - 1, names - 1],
            )
    for span, hours, rows in (("hour", 24, 800), ("day", 1, 4000))[not by_hour :]:
        cursor.execute(
            """
            INSERT INTO server_log_locksum (log_id, span, at, "table", "user", command,
                commands, read_wait_ms, read_held_ms, write_wait_ms, write_held_ms,
                longest_wait_ms, longest_held_ms, origin)
            SELECT %s, %s, %s + h * interval '1 hour', 'db.' || n %% 40,
                'user' || n %% 601, 'user-c' || n %% 7, 4, 5, 6, 7 * (n %% 97), 8, 9,
                10,
                (ARRAY['people', 'builds', 'ours'])[1 + n %% 3]
            FROM generate_series(0, %s) h, generate_series(0, %s) n
            """,
            [log_id, span, day, hours - 1, rows - 1],
        )


def size() -> dict[str, str]:
    """Return how large the database is."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_size_pretty(pg_database_size(current_database()))")
        [text] = cursor.fetchone()
    return {"database": text}


if __name__ == "__main__":
    main()
