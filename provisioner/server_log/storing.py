"""Store what a log says, and its sums, in one transaction with how far it was read."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import connection, models

from provisioner.lib import clocks
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogHour,
    LogMessage,
    LogSum,
    LogTableUse,
    ServerLog,
    Span,
)
from provisioner.server_log.origin import Origins
from provisioner.server_log.partitions import ensure_days
from provisioner.server_log.records import (
    LoggedCommand,
    ReadCounts,
    Record,
    TableUse,
)
from provisioner.server_log.records import LogMessage as Message
from provisioner.server_log.redaction import redacted, redacted_text

# A table use of its own is kept of those that waited or held locks so long.
WORTH_A_ROW_MS = 100
# Shorter ones of a table are the most, and nobody's trouble.
WORTH_A_SUM_MS = 10
# Three of any letters fit into an index of PostgreSQL; what is longer is cut.
NAME_CHARACTERS = 200
# A clock may be ahead of ours, and a zone be wrong by as much.
AHEAD = dt.timedelta(days=1)
_NO_SOONER_THAN = int(dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp())
_COUNTS = tuple(ReadCounts.__dataclass_fields__)
_LONGEST = {"longest_ms", "most_rows", "longest_wait_ms", "longest_held_ms"}

# Columns of a log that what is stored of it is added to.
COUNTED = (*_COUNTS, "misdated")
_HOUR, _DAY = 3600, 86_400

Rows = list[tuple[Any, ...]]
# By an hour (how many since 1970) and names: what is added up, of each command.
_Parts = defaultdict[tuple[Any, ...], list[tuple[int, ...]]]


class Batch:
    """Rows and sums of some records of a log, to be stored in one transaction.

    Days that are no longer kept are only in the sums. Commands that are dated in the
    future are not stored, but counted in `misdated`.
    """

    def __init__(self, log: ServerLog) -> None:
        now = clocks.database_now()
        self._log_id = log.pk
        self._zone = zoneinfo.ZoneInfo(log.time_zone)
        self._origins = Origins(log)
        self._latest = int((now + AHEAD).timestamp())
        oldest = now - dt.timedelta(days=settings.SERVER_LOG_DAYS)
        self._oldest_day = int(oldest.timestamp()) // _DAY
        self._days: set[int] = set()
        self._commands: Rows = []
        self._uses: list[tuple[int, tuple[Any, ...]]] = []
        self._messages: Rows = []
        self._sums: _Parts = defaultdict(list)
        self._locks: _Parts = defaultdict(list)
        self.misdated = 0

    def add(self, records: Iterable[Record]) -> None:
        """Take records in; they need not be kept by the caller."""
        for record in records:
            if isinstance(record, LoggedCommand):
                self._add_command(record)
            else:
                self._add_message(record)

    def _add_command(self, command: LoggedCommand) -> None:
        started = _zoned(command.started, self._zone)
        if not _NO_SOONER_THAN < started < self._latest:
            self.misdated += 1
            return
        is_kept = self._is_kept(started)
        origin = self._origins.of(command)
        user = command.user[:NAME_CHARACTERS]
        client = command.client[:NAME_CHARACTERS]
        host = command.host[:NAME_CHARACTERS]
        program = command.program[:NAME_CHARACTERS]
        name = command.command[:NAME_CHARACTERS]
        wait, held, rows = self._add_tables(
            command, started, (user, client, name, origin), is_kept=is_kept
        )
        lapse, cpu = _ms(command.lapse), command.user_cpu_ms + command.system_cpu_ms
        numbers = (
            1,
            int(command.has_failed),
            int(lapse >= 30_000),
            int(lapse >= 60_000),
            int(lapse >= 120_000),
            lapse,
            cpu,
            wait,
            held,
            command.files_sent,
            command.sent_mb,
            rows,
            lapse,
            rows,
        )
        sums, hour = self._sums, started // _HOUR
        sums[hour, "client", client, origin].append(numbers)
        sums[hour, "command", name, origin].append(numbers)
        sums[hour, "host", host, origin].append(numbers)
        sums[hour, "program", program, origin].append(numbers)
        sums[hour, "user", user, origin].append(numbers)
        if is_kept:
            ended = command.ended
            self._commands.append(
                (
                    self._log_id,
                    _said(started),
                    None if ended is None else _said(_zoned(ended, self._zone)),
                    command.pid,
                    user,
                    client,
                    host,
                    program,
                    name,
                    redacted(command.command, command.arguments),
                    lapse,
                    _ms(command.compute_lapse),
                    _ms(command.paused),
                    cpu,
                    wait,
                    held,
                    command.max_rss_kb,
                    command.rpc_in_mb,
                    command.rpc_out_mb,
                    command.files_sent,
                    command.sent_mb,
                    command.has_failed,
                    rows,
                    origin,
                )
            )

    def _add_tables(
        self,
        command: LoggedCommand,
        started: int,
        names: tuple[str, str, str, str],
        *,
        is_kept: bool,
    ) -> tuple[int, int, int]:
        """Take in the locks of a command of this user, client, name and origin.

        Returns its waits and holds together, and how many rows it scanned.
        """
        wait = held = rows = 0
        hour = started // _HOUR
        user, client, name, origin = names
        for said, use in command.uses.items():
            rows += int(use[_SCANNED] or 0)
            locked = use[_LOCKED]
            if not any(locked):
                continue
            numbers = [int(number) if number else 0 for number in locked]
            read_wait, read_held, write_wait, write_held, *longest = numbers
            waited, holds = read_wait + write_wait, read_held + write_held
            wait += waited
            held += holds
            if waited < WORTH_A_SUM_MS and holds < WORTH_A_SUM_MS:
                continue
            table = said[:NAME_CHARACTERS]
            self._locks[hour, table, user, name, origin].append(
                (
                    1,
                    read_wait,
                    read_held,
                    write_wait,
                    write_held,
                    max(longest[0], longest[2]),
                    max(longest[1], longest[3]),
                )
            )
            if is_kept and (waited >= WORTH_A_ROW_MS or holds >= WORTH_A_ROW_MS):
                row = (
                    *(_moment(started), self._end_of(command, started)),
                    *(user, client, name, origin, table),
                    *(read_wait, read_held, write_wait, write_held),
                )
                self._uses.append((len(self._commands), row))
        return wait, held, rows

    def _end_of(self, command: LoggedCommand, started: int) -> dt.datetime:
        """Return when a command ended, by its lapse where that is more exact."""
        lapsed = _moment(started) + dt.timedelta(milliseconds=_ms(command.lapse))
        if command.ended is None:
            return lapsed
        return max(_moment(_zoned(command.ended, self._zone)), lapsed)

    def _add_message(self, message: Message) -> None:
        at = _zoned(message.at, self._zone)
        if _NO_SOONER_THAN < at < self._latest and self._is_kept(at):
            text = redacted_text(message.text)
            row = (self._log_id, _moment(at), str(message.kind), message.pid)
            self._messages.append((*row, message.operation, text))

    def save(self, counts: ReadCounts) -> None:
        """Store all of it, with what was counted.

        Call it in a transaction that holds the log's row: others trust that commands of
        a log are numbered by one at a time.
        """
        ensure_days(_moment(day * _DAY).date() for day in sorted(self._days))
        numbers = _numbers(LogCommand, len(self._commands))
        _copy(
            LogCommand,
            [
                (number, *row)
                for number, row in zip(numbers, self._commands, strict=True)
            ],
            ("id", *_COMMAND_COLUMNS),
        )
        _copy(
            LogTableUse,
            [(self._log_id, numbers[index], *row) for index, row in self._uses],
            ("log_id", "command_id", *_USE_COLUMNS, *_LOCK_COLUMNS),
        )
        # Known ones are written, too, so that nobody counts them before this is seen.
        LogHour.objects.bulk_create(
            [LogHour(log_id=self._log_id, at=at) for at in self._hours()],
            update_conflicts=True,
            unique_fields=["log", "at"],
            update_fields=["at"],
        )
        columns = ("log_id", "at", "kind", "pid", "operation", "text")
        _copy(LogMessage, self._messages, columns)
        _add_up(LogSum, _SUM_KEY, _SUM_COLUMNS, self._rows_of(self._sums))
        _add_up(LockSum, _LOCK_KEY, _LOCK_SUMS, self._rows_of(self._locks))
        changed = {name: models.F(name) + getattr(counts, name) for name in _COUNTS}
        misdated = models.F("misdated") + self.misdated
        ServerLog.objects.filter(pk=self._log_id).update(**changed, misdated=misdated)

    def _hours(self) -> list[dt.datetime]:
        """Return the hours that the stored commands began in."""
        hours = {hour for hour, *_ in self._sums if hour // 24 in self._days}
        return [_moment(hour * _HOUR) for hour in sorted(hours)]

    def _is_kept(self, seconds: int) -> bool:
        day = seconds // _DAY
        if day < self._oldest_day:
            return False
        self._days.add(day)
        return True

    def _rows_of(self, parts: _Parts) -> Rows:
        """Return rows of sums by hour."""
        log_id, span = self._log_id, Span.HOUR.value
        return [
            (log_id, span, _said(hour * _HOUR), *names, *_together(numbers))
            for (hour, *names), numbers in parts.items()
        ]


# Of the numbers of a `TableUse`: waits and holds of all locks, then of the longest.
_SCANNED = TableUse._fields.index("rows_scanned")
_LOCKED = slice(
    TableUse._fields.index("read_wait_ms"),
    TableUse._fields.index("max_write_held_ms") + 1,
)
# The last numbers of sums are maxima.
_MAXIMA = 2


def _together(numbers: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sums of all these numbers, but the greatest of the last ones."""
    if len(numbers) == 1:
        return numbers[0]
    columns = list(zip(*numbers, strict=True))
    return (*map(sum, columns[:-_MAXIMA]), *map(max, columns[-_MAXIMA:]))


_COMMAND_COLUMNS = tuple(
    field.column for field in LogCommand._meta.concrete_fields if field.name != "id"
)
_USE_COLUMNS = (
    *("started_at", "ended_at", "user", "client", "command", "origin", "table"),
)
_LOCK_COLUMNS = ("read_wait_ms", "read_held_ms", "write_wait_ms", "write_held_ms")
_SUM_KEY = ("log_id", "span", "at", "by", "name", "origin")
_SUM_COLUMNS = (
    *("commands", "failed", "over_30s", "over_60s", "over_120s", "lapse_ms"),
    *("cpu_ms", "wait_ms", "held_ms", "files_sent", "sent_mb", "rows_scanned"),
    *("longest_ms", "most_rows"),
)
_LOCK_KEY = ("log_id", "span", "at", "table", "user", "command", "origin")
_LOCK_SUMS = ("commands", *_LOCK_COLUMNS, "longest_wait_ms", "longest_held_ms")


def state_of(commands: Sequence[LoggedCommand]) -> list[dict[str, Any]]:
    """Return commands in a form that JSON has."""
    return [{**asdict(command), "uses": command.tables} for command in commands]


def commands_of(state: Iterable[dict[str, Any]]) -> list[LoggedCommand]:
    """Return the commands of which `state_of` made this."""
    return [LoggedCommand(**facts) for facts in state]


@lru_cache(maxsize=4000)
def _moment(seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


@lru_cache(maxsize=4000)
def _said(seconds: int) -> str:
    """Return the moment as PostgreSQL takes it; its text is made once."""
    return str(_moment(seconds))


def _zoned(seconds: int, zone: zoneinfo.ZoneInfo) -> int:
    """Return the seconds in UTC of a server's clock, which says no time zone."""
    return seconds + _shift(seconds // 900, zone)


@lru_cache(maxsize=1000)
def _shift(quarter: int, zone: zoneinfo.ZoneInfo) -> int:
    """Return the seconds from a zone's clock in a quarter of an hour to UTC."""
    shown = dt.datetime.fromtimestamp(quarter * 900, dt.UTC)
    return int(shown.replace(tzinfo=zone).timestamp()) - quarter * 900


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _numbers(model: type[models.Model], count: int) -> list[int]:
    """Return so many new primary keys."""
    if not count:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT nextval('{model._meta.db_table}_id_seq') "  # noqa: S608 - ours
            "FROM generate_series(1, %s)",
            [count],
        )
        return [number for (number,) in cursor.fetchall()]


def _copy(model: type[models.Model] | str, rows: Rows, columns: Sequence[str]) -> None:
    if not rows:
        return
    table = model if isinstance(model, str) else model._meta.db_table
    names = _quoted(columns)
    with (
        connection.cursor() as cursor,
        cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _add_up(
    model: type[models.Model], key: Sequence[str], sums: Sequence[str], rows: Rows
) -> None:
    """Add sums by hour to those that are there, and to those by day."""
    if not rows:
        return
    table, columns = model._meta.db_table, _quoted((*key, *sums))
    names = _quoted(name for name in key if name not in ("log_id", "span", "at"))
    totals = ", ".join(
        f'max("{name}")' if name in _LONGEST else f'sum("{name}")::bigint'
        for name in sums
    )
    changes = ", ".join(
        f'"{name}" = greatest(there."{name}", excluded."{name}")'
        if name in _LONGEST
        else f'"{name}" = there."{name}" + excluded."{name}"'
        for name in sums
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE {table}_new ON COMMIT DROP AS "  # noqa: S608 - ours
            f"SELECT {columns} FROM {table} WITH NO DATA"
        )
        _copy(f"{table}_new", rows, (*key, *sums))
        cursor.execute(
            f"INSERT INTO {table} AS there ({columns}) "  # noqa: S608 - ours
            f"SELECT * FROM {table}_new UNION ALL "
            f"SELECT log_id, '{Span.DAY.value}', date_trunc('day', at, 'UTC'), "
            f"{names}, {totals} FROM {table}_new GROUP BY 1, 2, 3, {names} "
            f"ORDER BY {_quoted(key)} "
            f"ON CONFLICT ({_quoted(key)}) DO UPDATE SET {changes}"
        )
        cursor.execute(f"DROP TABLE {table}_new")


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
