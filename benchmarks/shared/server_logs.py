"""Millions of commands of a Perforce server, made in SQL as if they had been read.

Of 300 users, of whom some are builds, with three clients each and 2,000 hosts; a few
commands take minutes, hold tables and make others wait, as in a server's log.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

DAYS = 30
SERVER = "made"

# Of the number of a command in its day: names that depend on one another, by hash.
_COMMANDS = """
INSERT INTO {part} (
    id, log_id, started_at, ended_at, pid, "user", client, host, program, command,
    arguments, lapse_ms, compute_ms, paused_ms, cpu_ms, wait_ms, held_ms, max_rss_kb,
    rpc_in_mb, rpc_out_mb, files_sent, sent_mb, has_failed, rows_scanned, origin)
SELECT %(first)s + n, %(log)s, at, at + lapse * interval '1 ms', n %% 32768,
    name, name || '-main' || n %% 3, '10.5.' || u %% 8 || '.' || (n * 7) %% 250,
    (ARRAY['p4/2024.1/LINUX26X86_64/2611120', 'p4v/2025.1', 'p4python/2024.2',
        'p4java/2024.1', 'UE/v86', 'jenkins.p4-plugin/1.16'])[1 + u %% 6],
    CASE WHEN n %% 400009 = 0 THEN 'user-obliterate' ELSE
        (ARRAY['user-fstat', 'user-fstat', 'user-sync', 'user-have', 'user-opened',
            'user-client', 'user-where', 'user-files', 'user-changes', 'user-describe',
            'user-edit', 'user-submit', 'user-info', 'user-print', 'user-integrate',
            'user-flush'])[1 + (n / 3) %% 16] END,
    '-q //depot/main/' || n || '/...',
    lapse, 0, 0, lapse / 4, lapse / 40, lapse / 20, 68864, 1, 5, n %% 40, n %% 90,
    n %% 997 = 0, CASE WHEN n %% 9001 = 0 THEN 3000000 ELSE n %% 5000 END,
    CASE WHEN n %% 1009 = 0 THEN 'ours' WHEN u >= 270 THEN 'builds' ELSE 'people' END
FROM (
    SELECT n, u, at, (10 * exp(pow(r, 3) * CASE WHEN n %% 211 = 0
        THEN 10 ELSE 5 END))::bigint AS lapse,
        CASE WHEN n %% 100003 = 0 THEN 'rare' || n %% 7 ELSE 'user' || u END AS name
    FROM (
        SELECT n, (hashint8(n) & 2147483647) %% 300 AS u,
            %(day)s::timestamptz + n * (interval '1 day' / %(count)s) AS at,
            (hashint8(n + 7919) & 1048575) / 1048576.0::float8 AS r
        FROM generate_series(0, %(count)s - 1) AS n
        OFFSET 0
    ) AS drawn
) AS made
"""
_SUMS = """
INSERT INTO server_log_logsum (
    log_id, span, at, by, name, origin, commands, failed, over_30s, over_60s, over_120s,
    lapse_ms, cpu_ms, wait_ms, held_ms, files_sent, sent_mb, rows_scanned, longest_ms,
    most_rows)
SELECT log_id, span, at,
    CASE WHEN grouping("user") = 0 THEN 'user' WHEN grouping(client) = 0 THEN 'client'
        WHEN grouping(host) = 0 THEN 'host' WHEN grouping(program) = 0 THEN 'program'
        ELSE 'command' END,
    coalesce("user", client, host, program, command), origin,
    count(*), count(*) FILTER (WHERE has_failed),
    count(*) FILTER (WHERE lapse_ms >= 30000),
    count(*) FILTER (WHERE lapse_ms >= 60000),
    count(*) FILTER (WHERE lapse_ms >= 120000),
    sum(lapse_ms), sum(cpu_ms), sum(wait_ms), sum(held_ms), sum(files_sent),
    sum(sent_mb), sum(rows_scanned), max(lapse_ms), max(rows_scanned)
FROM {part}
CROSS JOIN LATERAL (VALUES ('hour', date_trunc('hour', started_at, 'UTC')),
    ('day', date_trunc('day', started_at, 'UTC'))) AS spans (span, at)
GROUP BY GROUPING SETS (
    (log_id, span, at, origin, "user"), (log_id, span, at, origin, client),
    (log_id, span, at, origin, host), (log_id, span, at, origin, program),
    (log_id, span, at, origin, command))
"""
_WEEKS = """
DELETE FROM server_log_logsum WHERE span = 'week' AND log_id = %(log)s;
INSERT INTO server_log_logsum (
    log_id, span, at, by, name, origin, commands, failed, over_30s, over_60s, over_120s,
    lapse_ms, cpu_ms, wait_ms, held_ms, files_sent, sent_mb, rows_scanned, longest_ms,
    most_rows)
SELECT log_id, 'week', date_trunc('week', at, 'UTC'), by, name, origin, sum(commands),
    sum(failed), sum(over_30s), sum(over_60s), sum(over_120s), sum(lapse_ms),
    sum(cpu_ms), sum(wait_ms), sum(held_ms), sum(files_sent), sum(sent_mb),
    sum(rows_scanned), max(longest_ms), max(most_rows)
FROM server_log_logsum WHERE span = 'day' AND log_id = %(log)s
GROUP BY log_id, date_trunc('week', at, 'UTC'), by, name, origin;
DELETE FROM server_log_locksum WHERE span = 'week' AND log_id = %(log)s;
INSERT INTO server_log_locksum (
    log_id, span, by, at, "table", "user", command, origin, commands, read_wait_ms,
    read_held_ms, write_wait_ms, write_held_ms, longest_wait_ms, longest_held_ms)
SELECT log_id, 'week', by, date_trunc('week', at, 'UTC'), "table", "user", command,
    origin, sum(commands), sum(read_wait_ms), sum(read_held_ms), sum(write_wait_ms),
    sum(write_held_ms), max(longest_wait_ms), max(longest_held_ms)
FROM server_log_locksum WHERE span = 'day' AND log_id = %(log)s
GROUP BY log_id, by, date_trunc('week', at, 'UTC'), "table", "user", command, origin
"""
_USED = """
CREATE TEMPORARY TABLE used ON COMMIT DROP AS
SELECT id, log_id, started_at, ended_at, "user", client, command, origin,
    (ARRAY['db.have', 'db.rev', 'db.working', 'db.integed', 'db.domain', 'db.locks',
        'meta/db', 'clients'])[1 + length(command) %% 8] AS "table",
    CASE WHEN id %% 2 = 0 THEN wait_ms ELSE 0 END AS read_wait_ms,
    CASE WHEN id %% 3 = 0 THEN held_ms ELSE 0 END AS read_held_ms,
    CASE WHEN id %% 2 = 1 THEN wait_ms ELSE 0 END AS write_wait_ms,
    CASE WHEN id %% 3 > 0 THEN held_ms ELSE 0 END AS write_held_ms
FROM {part} WHERE held_ms >= 10
"""
_LOCK_SUMS = """
INSERT INTO server_log_locksum (
    log_id, span, by, at, "table", "user", command, origin, commands, read_wait_ms,
    read_held_ms, write_wait_ms, write_held_ms, longest_wait_ms, longest_held_ms)
SELECT log_id, span, CASE WHEN grouping("user") = 1 THEN 'table' ELSE 'command' END, at,
    "table", coalesce("user", ''), coalesce(command, ''), origin, count(*),
    sum(read_wait_ms), sum(read_held_ms), sum(write_wait_ms), sum(write_held_ms),
    max(read_wait_ms + write_wait_ms), max(read_held_ms + write_held_ms)
FROM used
CROSS JOIN LATERAL (VALUES ('hour', date_trunc('hour', started_at, 'UTC')),
    ('day', date_trunc('day', started_at, 'UTC'))) AS spans (span, at)
GROUP BY GROUPING SETS (
    (log_id, span, at, "table", origin),
    (log_id, span, at, "table", "user", command, origin))
"""
_USES = """
INSERT INTO server_log_logtableuse (
    log_id, command_id, started_at, ended_at, "user", client, command, origin, "table",
    read_wait_ms, read_held_ms, write_wait_ms, write_held_ms)
SELECT log_id, id, started_at, ended_at, "user", client, command, origin, "table",
    read_wait_ms, read_held_ms, write_wait_ms, write_held_ms
FROM used WHERE greatest(read_wait_ms + write_wait_ms, read_held_ms + write_held_ms)
    >= 100
"""
_MESSAGES = """
INSERT INTO server_log_logmessage (log_id, at, kind, pid, operation, text)
SELECT log_id, started_at, CASE WHEN id %% 3 = 0 THEN 'threads' ELSE 'error' END, pid,
    command, 'No such file(s): ' || arguments
FROM {part} WHERE id %% 500 = 0
"""
_POLLING = """
INSERT INTO server_log_repeatedcommand (
    log_id, at, "user", program, client, command, origin, commands, parts, lapse_ms,
    rows_scanned)
SELECT log_id, date_trunc('hour', started_at, 'UTC'), "user", program, client, command,
    origin, 60 + count(*), 12, 60 * sum(lapse_ms), sum(rows_scanned)
FROM {part} WHERE id %% 1000 = 1
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""


def fill(commands: int) -> dict[str, Any] | None:
    """Have so many commands in the log of a server; None if they are there.

    Yesterday is made, and the other days are made of it, the newest first: at the same
    times and by the same people. A day that was filled before is left as it is.
    Days are filled before they become partitions, so that their indexes are made in
    one go. Unlogged: what is read is the same, and nobody needs it after a crash.
    """
    from django.db import connection

    from provisioner.server_log.models import LogFile, ServerLog
    from provisioner.sites.models import PerforceServer

    server, _ = PerforceServer.objects.get_or_create(
        name=SERVER, defaults={"p4port": "localhost:1666"}
    )
    log, _ = ServerLog.objects.get_or_create(
        server=server, defaults={"path": "/made", "is_followed": False}
    )
    began = time.perf_counter()
    now = dt.datetime.now(dt.UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    known = set(log.files.values_list("head", flat=True))
    days = [today - dt.timedelta(days=1), today]
    days += [today - dt.timedelta(days=number) for number in range(2, DAYS)]
    filled = 0
    for number, day in enumerate(days):
        if f"{day:%Y%m%d}" in known:
            continue
        values = {
            # Numbers of its own: what is kept is filled on another day, too.
            "first": day.toordinal() * (commands // DAYS),
            "log": log.pk,
            "day": day,
            "count": commands // DAYS,
            "back": days[0] - day,
            "later": (day - days[0]).days * (commands // DAYS),
            "made": days[0],
            "made_end": days[0] + dt.timedelta(days=1),
            "now": now,
        }
        size = _fill_day(day, values, is_first=number == 0)
        LogFile.objects.create(log=log, head=f"{day:%Y%m%d}", size=size)
        filled += size
    if not filled:
        return None
    with connection.cursor() as cursor:
        for statement in _WEEKS.split(";"):
            cursor.execute(statement, {"log": log.pk})
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT pg_database_size(current_database())")
        row = cursor.fetchone()
    assert row is not None
    return {
        "figure": "commands made",
        "value": filled,
        "seconds": round(time.perf_counter() - began),
        "database_gb": round(row[0] / 2**30, 1),
    }


def _fill_day(day: dt.datetime, values: dict[str, Any], *, is_first: bool) -> int:
    """Fill a day; return how many commands it has."""
    from django.db import connection, transaction

    from provisioner.server_log import models
    from provisioner.server_log.partitions import ensure_days, know_names

    table, end = models.LogCommand._meta.db_table, day + dt.timedelta(days=1)
    part = f"{table}_{day:%Y%m%d}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL maintenance_work_mem = '512MB'")
        cursor.execute("SET LOCAL work_mem = '256MB'")
        ensure_days([day.date()])
        cursor.execute(
            f"DROP TABLE {part}; "
            f"CREATE UNLOGGED TABLE {part} (LIKE {table} INCLUDING DEFAULTS)"
        )
        know_names(part)
        if is_first:
            cursor.execute(_COMMANDS.format(part=part), values)
        else:
            cursor.execute(_again(models.LogCommand, part), values)
        size = int(cursor.rowcount)
        cursor.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {part} "
            f"FOR VALUES FROM ('{day:%F} 00:00+00') TO ('{end:%F} 00:00+00')"
        )
        if is_first:
            for template in (_SUMS, _USED, _LOCK_SUMS, _USES, _MESSAGES, _POLLING):
                cursor.execute(template.format(part=part), values)
            return size
        for model in (
            *(models.LogSum, models.LockSum, models.LogTableUse),
            *(models.LogMessage, models.RepeatedCommand),
        ):
            cursor.execute(_again(model, model._meta.db_table), values)
    return size


def _again(model: Any, table: str) -> str:
    """Return the SQL that adds another day's rows, made of those of the first day."""
    time = "at" if hasattr(model, "at") else "started_at"
    # Of commands they are known to their uses of tables.
    has_numbers_of_its_own = table == model._meta.db_table
    columns = []
    for field in model._meta.concrete_fields:
        name = f'"{field.column}"'
        if field.primary_key and has_numbers_of_its_own:
            continue
        if field.primary_key or field.name == "command_id":
            columns.append((name, f"{name} + %(later)s"))
        elif field.get_internal_type() == "DateTimeField":
            columns.append((name, f"{name} - %(back)s"))
        else:
            columns.append((name, name))
    return (
        f"INSERT INTO {table} "  # noqa: S608 - ours
        f"({', '.join(name for name, _ in columns)}) "
        f"SELECT {', '.join(value for _, value in columns)} "
        f"FROM {model._meta.db_table} WHERE log_id = %(log)s AND {time} >= %(made)s "
        f"AND {time} < %(made_end)s AND {time} - %(back)s < %(now)s"
    )
