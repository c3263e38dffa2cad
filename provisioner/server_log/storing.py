"""Store what a log says, and its sums, in one transaction with how far it was read."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import connection, models

from provisioner.lib import clocks
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
    ServerLog,
    Span,
)
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
# Of a name in the key of sums: three of any letters fit into an index of PostgreSQL.
KEY_CHARACTERS = 200
# A clock may be ahead of ours, and a zone be wrong by as much.
AHEAD = dt.timedelta(days=1)
_NO_SOONER_THAN = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_COUNTS = tuple(ReadCounts.__dataclass_fields__)
_LONGEST = {"longest_ms", "longest_wait_ms", "longest_held_ms"}

Rows = list[tuple[Any, ...]]


def store(log: ServerLog, records: Iterable[Record], counts: ReadCounts) -> None:
    """Store records in their days, and add them to the sums. Call it in a transaction.

    Days that are no longer kept are in the sums alone. Commands that are
    dated in the future are not stored, but counted.
    """
    batch = _Batch(log, now=clocks.database_now())
    for record in records:
        if isinstance(record, LoggedCommand):
            batch.add_command(record)
        else:
            batch.add_message(record)
    batch.save()
    changed = {name: models.F(name) + getattr(counts, name) for name in _COUNTS}
    misdated = models.F("misdated") + batch.misdated
    ServerLog.objects.filter(pk=log.pk).update(**changed, misdated=misdated)


class _Batch:
    """Rows and sums of some records of a log."""

    def __init__(self, log: ServerLog, *, now: dt.datetime) -> None:
        self._log_id = log.pk
        self._zone = zoneinfo.ZoneInfo(log.time_zone)
        self._latest = now + AHEAD
        self._oldest_day = (now - dt.timedelta(days=settings.SERVER_LOG_DAYS)).date()
        self._days: set[dt.date] = set()
        self._commands: Rows = []
        self._uses: list[tuple[int, tuple[Any, ...]]] = []
        self._messages: Rows = []
        self._sums: dict[tuple[Any, ...], list[int]] = {}
        self._locks: dict[tuple[Any, ...], list[int]] = {}
        self.misdated = 0

    def add_command(self, command: LoggedCommand) -> None:
        started = _moment(command.started, self._zone)
        if not _NO_SOONER_THAN < started < self._latest:
            self.misdated += 1
            return
        wait = held = 0
        hour = started.replace(minute=0, second=0)
        for name, use in command.tables.items():
            waited, holds = _waited(use), _held(use)
            wait, held = wait + waited, held + holds
            if waited or holds:
                self._add_locks(command, name, use, hour)
        lapse, cpu = _ms(command.lapse), command.user_cpu_ms + command.system_cpu_ms
        numbers = (
            *(1, command.has_failed, lapse > 30_000, lapse > 60_000, lapse > 120_000),
            *(lapse, lapse, cpu, wait, held, command.files_sent, command.sent_mb),
        )
        for by, name in (
            (LogSum.By.COMMAND, command.command),
            (LogSum.By.USER, command.user),
            (LogSum.By.PROGRAM, command.program),
            (LogSum.By.CLIENT, command.client),
            (LogSum.By.HOST, command.host),
        ):
            key = (by, hour, name[:KEY_CHARACTERS])
            _add(self._sums, key, numbers, _LONGEST_OF_SUMS)
        if not self._is_kept(started):
            return
        for name, use in command.tables.items():
            if _waited(use) >= WORTH_A_ROW_MS or _held(use) >= WORTH_A_ROW_MS:
                row = (started, name, *_locks_of(use))
                self._uses.append((len(self._commands), row))
        ended = command.ended
        self._commands.append(
            (
                *(self._log_id, started),
                None if ended is None else _moment(ended, self._zone),
                *(command.pid, command.user, command.client, command.host),
                *(command.program, command.command),
                redacted(command.command, command.arguments),
                *(lapse, _ms(command.compute_lapse), _ms(command.paused), cpu),
                *(wait, held, command.max_rss_kb),
                *(command.rpc_in_mb, command.rpc_out_mb),
                *(command.files_sent, command.sent_mb, command.has_failed),
            )
        )

    def add_message(self, message: Message) -> None:
        at = _moment(message.at, self._zone)
        if at < self._latest and self._is_kept(at):
            text = redacted_text(message.text)
            row = (self._log_id, at, str(message.kind), message.pid)
            self._messages.append((*row, message.operation, text))

    def save(self) -> None:
        ensure_days(self._days)
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
            ("log_id", "command_id", "started_at", "table", *_LOCK_COLUMNS),
        )
        columns = ("log_id", "at", "kind", "pid", "operation", "text")
        _copy(LogMessage, self._messages, columns)
        _add_up(LogSum, _SUM_KEY, _SUM_COLUMNS, self._rows_of(self._sums, at=1))
        _add_up(LockSum, _LOCK_KEY, _LOCK_SUMS, self._rows_of(self._locks, at=0))

    def _is_kept(self, moment: dt.datetime) -> bool:
        day = moment.date()
        if day < self._oldest_day:
            return False
        self._days.add(day)
        return True

    def _add_locks(
        self, command: LoggedCommand, table: str, use: TableUse, hour: dt.datetime
    ) -> None:
        longest_wait = max(use.max_read_wait_ms, use.max_write_wait_ms)
        longest_held = max(use.max_read_held_ms, use.max_write_held_ms)
        numbers = (1, *_locks_of(use), longest_wait, longest_held)
        names = (table, command.user, command.command)
        key = (hour, *(name[:KEY_CHARACTERS] for name in names))
        _add(self._locks, key, numbers, _LONGEST_OF_LOCKS)

    def _rows_of(
        self, sums: dict[tuple[Any, ...], list[int]], *, at: int
    ) -> Iterator[tuple[Any, ...]]:
        """Yield rows of sums by hour, then by day; `at` is where a key has its hour."""
        longest = _LONGEST_OF_SUMS if at else _LONGEST_OF_LOCKS
        days: dict[tuple[Any, ...], list[int]] = {}
        for key, numbers in sorted(sums.items(), key=lambda pair: pair[0]):
            yield (self._log_id, Span.HOUR.value, *key, *numbers)
            day = key[at].replace(hour=0)
            _add(days, (*key[:at], day, *key[at + 1 :]), numbers, longest)
        for key, numbers in sorted(days.items(), key=lambda pair: pair[0]):
            yield (self._log_id, Span.DAY.value, *key, *numbers)


_COMMAND_COLUMNS = tuple(
    field.column for field in LogCommand._meta.concrete_fields if field.name != "id"
)
_LOCK_COLUMNS = ("read_wait_ms", "read_held_ms", "write_wait_ms", "write_held_ms")
_SUM_KEY = ("log_id", "span", "by", "at", "name")
_SUM_COLUMNS = (
    *("commands", "failed", "over_30s", "over_60s", "over_120s", "lapse_ms"),
    *("longest_ms", "cpu_ms", "wait_ms", "held_ms", "files_sent", "sent_mb"),
)
_LOCK_KEY = ("log_id", "span", "at", "table", "user", "command")
_LOCK_SUMS = ("commands", *_LOCK_COLUMNS, "longest_wait_ms", "longest_held_ms")
_LONGEST_OF_SUMS = {_SUM_COLUMNS.index("longest_ms")}
_LONGEST_OF_LOCKS = {len(_LOCK_SUMS) - 2, len(_LOCK_SUMS) - 1}


def state_of(commands: Sequence[LoggedCommand]) -> list[dict[str, Any]]:
    """Return commands in a form that JSON has."""
    return [asdict(command) for command in commands]


def commands_of(state: Iterable[dict[str, Any]]) -> list[LoggedCommand]:
    """Return the commands of which `state_of` made this."""
    return [
        LoggedCommand(
            **{
                **facts,
                "tables": {
                    name: TableUse(**use) for name, use in facts["tables"].items()
                },
            }
        )
        for facts in state
    ]


def _moment(seconds: int, zone: zoneinfo.ZoneInfo) -> dt.datetime:
    """Return the moment of a server's clock, which says no time zone."""
    quarter, rest = divmod(seconds, 900)
    return _quarter(quarter, zone) + dt.timedelta(seconds=rest)


@lru_cache(maxsize=1000)
def _quarter(quarter: int, zone: zoneinfo.ZoneInfo) -> dt.datetime:
    shown = dt.datetime.fromtimestamp(quarter * 900, dt.UTC)
    return shown.replace(tzinfo=zone).astimezone(dt.UTC)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _waited(use: TableUse) -> int:
    return use.read_wait_ms + use.write_wait_ms


def _held(use: TableUse) -> int:
    return use.read_held_ms + use.write_held_ms


def _locks_of(use: TableUse) -> tuple[int, int, int, int]:
    return (use.read_wait_ms, use.read_held_ms, use.write_wait_ms, use.write_held_ms)


def _add(
    sums: dict[tuple[Any, ...], list[int]],
    key: tuple[Any, ...],
    numbers: Sequence[int],
    longest: set[int],
) -> None:
    known = sums.get(key)
    if known is None:
        sums[key] = list(map(int, numbers))
        return
    for index, number in enumerate(numbers):
        if index in longest:
            known[index] = max(known[index], number)
        else:
            known[index] += number


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
    model: type[models.Model],
    key: Sequence[str],
    sums: Sequence[str],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Add sums to those that are there, in the order of their keys."""
    table, columns = model._meta.db_table, (*key, *sums)
    changes = ", ".join(
        f'"{name}" = greatest(there."{name}", excluded."{name}")'
        if name in _LONGEST
        else f'"{name}" = there."{name}" + excluded."{name}"'
        for name in sums
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE {table}_new ON COMMIT DROP AS "  # noqa: S608 - ours
            f"SELECT {_quoted(columns)} FROM {table} WITH NO DATA"
        )
        _copy(f"{table}_new", list(rows), columns)
        cursor.execute(
            f"INSERT INTO {table} AS there ({_quoted(columns)}) "  # noqa: S608 - ours
            f"SELECT * FROM {table}_new "
            f"ON CONFLICT ({_quoted(key)}) DO UPDATE SET {changes}"
        )
        cursor.execute(f"DROP TABLE {table}_new")


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
