"""Store what a log says, and its sums, in one transaction with how far it was read."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
from provisioner.server_log.parsing import never_completed
from provisioner.server_log.partitions import ensure_days
from provisioner.server_log.records import (
    LoggedCommand,
    ReadCounts,
    Record,
    Stored,
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
        # Of rows that replace others: their numbers, and when they began.
        self._again: dict[int, tuple[int, int]] = {}
        self._left_open: dict[LoggedCommand, tuple[str, int | None]] = {}
        self._numbers: list[int] = []
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

    def add_last(self, records: Sequence[Record]) -> int:
        """Take in what is told of commands as a file ends: another may tell more.

        Returns how many are left out, as a file that was read before told of their end.
        """
        known = self._stored_before(records)
        for record in records:
            if isinstance(record, LoggedCommand) and not never_completed(record):
                self._left_open[record] = "", None
        self.add(record for record in records if record not in known)
        return len(known)

    def _stored_before(self, records: Iterable[Record]) -> set[Record]:
        """Return commands without an end that are stored with theirs."""
        unended = {
            (_moment(_zoned(each.started, self._zone)), each.pid, each.command): each
            for each in records
            if isinstance(each, LoggedCommand)
            and each.ended is None
            and each.stored is None
        }
        if not unended:
            return set()
        times, pids, _ = zip(*unended, strict=True)
        ended = LogCommand.objects.filter(
            log=self._log_id, ended_at__isnull=False, started_at__in=times, pid__in=pids
        ).values_list("started_at", "pid", "command", "user", "client")
        return {
            unended[key]
            for *name, user, client in ended
            for key in [tuple(name)]
            if key in unended
            and (unended[key].user, unended[key].client) == (user, client)
        }

    @property
    def left_open(self) -> list[LoggedCommand]:
        """Those commands, with what was stored of them, once that is saved."""
        for command, (origin, index) in self._left_open.items():
            if origin:
                number = None if index is None else self._numbers[index]
                command.stored = None
                [before] = commands_of(state_of([command]))
                command.stored = Stored(number=number, origin=origin, before=before)
        return [command for command in self._left_open if command.stored is not None]

    def _add_command(self, command: LoggedCommand) -> None:
        """Take a command in; of one that was stored only what is new of it."""
        stored = command.stored
        if stored is None:
            self._count(command, origin=self._origins.of(command))
        elif _differ(command, stored.before):
            self._count(stored.before, origin=stored.origin, is_taken_back=True)
            self._count(command, origin=stored.origin, number=stored.number)

    def _count(
        self,
        command: LoggedCommand,
        *,
        origin: str,
        number: int | None = None,
        is_taken_back: bool = False,
    ) -> None:
        """Add a command to rows and sums, or take it back from the sums.

        With a number it replaces the row of that number.
        """
        started = _zoned(command.started, self._zone)
        if not _NO_SOONER_THAN < started < self._latest:
            self.misdated += 1
            return
        is_again = command.stored is not None
        is_kept = self._is_kept(started) and not is_taken_back
        # The row of a day that was not kept then is not made now.
        is_kept = is_kept and (number is not None or not is_again)
        user = command.user[:NAME_CHARACTERS]
        client = command.client[:NAME_CHARACTERS]
        host = command.host[:NAME_CHARACTERS]
        program = command.program[:NAME_CHARACTERS]
        name = command.command[:NAME_CHARACTERS]
        wait, held, rows = self._add_tables(
            command,
            started,
            (user, client, name, origin),
            is_kept=is_kept,
            is_taken_back=is_taken_back,
        )
        lapse, cpu = _ms(command.lapse), command.user_cpu_ms + command.system_cpu_ms
        numbers: tuple[int, ...] = (
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
        if is_taken_back:
            numbers = _taken_back(numbers)
        sums, hour = self._sums, started // _HOUR
        sums[hour, "client", client, origin].append(numbers)
        sums[hour, "command", name, origin].append(numbers)
        sums[hour, "host", host, origin].append(numbers)
        sums[hour, "program", program, origin].append(numbers)
        sums[hour, "user", user, origin].append(numbers)
        if command in self._left_open:
            self._left_open[command] = origin, len(self._commands) if is_kept else None
        if is_kept:
            ended = command.ended
            if number is not None:
                self._again[len(self._commands)] = number, started
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
        is_taken_back: bool,
    ) -> tuple[int, int, int]:
        """Take in the locks of a command of this user, client, name and origin.

        Returns its waits and holds together, and how many rows it scanned.
        """
        wait = held = rows = 0
        hour = started // _HOUR
        user, client, name, origin = names
        for said, use in command.uses.items():
            if scanned := use[_SCANNED]:
                rows += int(scanned)
            # Most are None, and most locks shorter than what is worth a sum.
            locked = use[_LOCKED]
            if not any(locked):
                continue
            numbers = [int(number or 0) for number in locked]
            read_wait, read_held, write_wait, write_held = numbers
            waited, holds = read_wait + write_wait, read_held + write_held
            wait += waited
            held += holds
            if waited < WORTH_A_SUM_MS and holds < WORTH_A_SUM_MS:
                continue
            longest = [int(number or 0) for number in use[_LONGEST_LOCKED]]
            table = said[:NAME_CHARACTERS]
            locks: tuple[int, ...] = (
                1,
                read_wait,
                read_held,
                write_wait,
                write_held,
                max(longest[0], longest[2]),
                max(longest[1], longest[3]),
            )
            locks = _taken_back(locks) if is_taken_back else locks
            self._locks[hour, "command", table, user, name, origin].append(locks)
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
        self._numbers = numbers = self._numbers_of_rows()
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
        locks = [*self._rows_of(self._locks), *self._rows_of(_by_table(self._locks))]
        _add_up(LockSum, _LOCK_KEY, _LOCK_SUMS, locks)
        changed = {name: models.F(name) + getattr(counts, name) for name in _COUNTS}
        misdated = models.F("misdated") + self.misdated
        ServerLog.objects.filter(pk=self._log_id).update(**changed, misdated=misdated)

    def _numbers_of_rows(self) -> list[int]:
        """Return the number of each row: a new one, or that of the row it replaces."""
        numbers = _numbers(LogCommand, len(self._commands) - len(self._again))
        # A zone or day of its row is as it was: both were made of the same command.
        for number, started in self._again.values():
            began = {"log": self._log_id, "started_at": _moment(started)}
            LogCommand.objects.filter(pk=number, **began).delete()
            LogTableUse.objects.filter(command_id=number, **began).delete()
        new = iter(numbers)
        return [
            self._again[index][0] if index in self._again else next(new)
            for index in range(len(self._commands))
        ]

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


# Of the numbers of a `TableUse`: waits and holds of all locks, and of the longest.
_SCANNED = TableUse._fields.index("rows_scanned")
_LOCKED = slice(
    TableUse._fields.index("read_wait_ms"),
    TableUse._fields.index("write_held_ms") + 1,
)
_LONGEST_LOCKED = slice(
    TableUse._fields.index("max_read_wait_ms"),
    TableUse._fields.index("max_write_held_ms") + 1,
)
# The last numbers of sums are maxima.
_MAXIMA = 2
_FACTS = tuple(LoggedCommand.__dataclass_fields__)


def _taken_back(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return what takes these numbers from sums; maxima do not go down."""
    return (*(-number for number in numbers[:-_MAXIMA]), *(0,) * _MAXIMA)


def _by_table(locks: _Parts) -> _Parts:
    """Return the locks of commands by table: few of these are to be added up."""
    tables: _Parts = defaultdict(list)
    for (hour, _, table, _, _, origin), numbers in locks.items():
        tables[hour, "table", table, "", "", origin].append(_together(numbers))
    return tables


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
_LOCK_KEY = ("log_id", "span", "at", "by", "table", "user", "command", "origin")
_LOCK_SUMS = ("commands", *_LOCK_COLUMNS, "longest_wait_ms", "longest_held_ms")


def state_of(commands: Sequence[LoggedCommand]) -> list[dict[str, Any]]:
    """Return commands in a form that JSON has."""
    return [_state(command) for command in commands]


def _state(command: LoggedCommand) -> dict[str, Any]:
    stored = command.stored
    return {
        **{name: getattr(command, name) for name in _FACTS},
        "triggers": dict(command.triggers),
        "uses": {name: list(use) for name, use in command.tables.items()},
        "stored": stored
        and {
            "number": stored.number,
            "origin": stored.origin,
            "before": _state(stored.before),
        },
    }


def _differ(command: LoggedCommand, other: LoggedCommand) -> bool:
    """Return whether the log tells more of a command than of its copy."""
    left_out = {"stored": None, "is_left_open": False}
    return {**_state(command), **left_out} != {**_state(other), **left_out}


def commands_of(state: Iterable[dict[str, Any]]) -> list[LoggedCommand]:
    """Return the commands of which `state_of` made this."""
    return [_command_of(facts) for facts in state]


def _command_of(facts: dict[str, Any]) -> LoggedCommand:
    stored = facts["stored"]
    if stored is not None:
        before = _command_of(stored["before"])
        stored = Stored(number=stored["number"], origin=stored["origin"], before=before)
    return LoggedCommand(**{**facts, "stored": stored})


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
    """Add sums by hour to those that are there, and to those of longer spans."""
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
    of_longer = " UNION ALL ".join(
        f"SELECT log_id, '{span.value}', date_trunc('{span.value}', at, 'UTC'), "  # noqa: S608 - ours
        f"{names}, {totals} FROM {table}_new GROUP BY 1, 2, 3, {names}"
        for span in (Span.DAY, Span.WEEK)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE {table}_new ON COMMIT DROP AS "  # noqa: S608 - ours
            f"SELECT {columns} FROM {table} WITH NO DATA"
        )
        _copy(f"{table}_new", rows, (*key, *sums))
        cursor.execute(
            f"INSERT INTO {table} AS there ({columns}) "  # noqa: S608 - ours
            f"SELECT * FROM {table}_new UNION ALL {of_longer} "
            f"ORDER BY {_quoted(key)} "
            f"ON CONFLICT ({_quoted(key)}) DO UPDATE SET {changes}"
        )
        cursor.execute(f"DROP TABLE {table}_new")


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
