"""What commands of Perforce servers took over some days, from the sums of their logs.

No number of these is counted from commands: there are millions of these.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import F, Max, QuerySet, Sum
from django.db.models.functions import Now, TruncDay, TruncHour

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.server_log.models import LockSum, LogSum, Span

DEFAULT_BY = LogSum.By.COMMAND.value
DEFAULT_ORDER = "lapse_ms"
# Longer times are told by the day: sums by hour are not kept for ever.
HOURS_UP_TO_DAYS = 2
_SUMMED = (
    *("commands", "failed", "over_30s", "over_60s", "over_120s", "lapse_ms"),
    *("cpu_ms", "wait_ms", "held_ms", "files_sent", "sent_mb"),
)
_HELD = ("read_held_ms", "write_held_ms")
_LONGEST_LOCKS = ("longest_wait_ms", "longest_held_ms")


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What all commands with one name in common took; times in milliseconds."""

    name: str
    commands: int
    failed: int
    over_30s: int
    over_60s: int
    over_120s: int
    lapse_ms: int
    longest_ms: int
    cpu_ms: int
    wait_ms: int
    held_ms: int
    files_sent: int
    sent_mb: int

    @property
    def mean_ms(self) -> int:
        return self.lapse_ms // max(self.commands, 1)


TALLIED = tuple(field.name for field in fields(Tally))


@dataclass(frozen=True, kw_only=True)
class LockTally:
    """What one user's commands of a kind waited for a table's locks and held them."""

    table: str
    user: str
    command: str
    commands: int
    read_held_ms: int
    write_held_ms: int
    wait_ms: int
    longest_wait_ms: int
    longest_held_ms: int


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What the commands that began in an hour or a day took."""

    at: dt.datetime
    commands: int
    lapse_ms: int
    wait_ms: int


def tallies(
    reader: User,
    *,
    by: str = DEFAULT_BY,
    days: int = 1,
    server: str = "",
    order: str = DEFAULT_ORDER,
    most: int | None = None,
) -> list[Tally]:
    """Return what commands took by each name, largest first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = _of_days(LogSum.objects.filter(by=by), days=days, server=server)
    totals = {f"all_{name}": Sum(name) for name in _SUMMED}
    rows = (
        sums.values("name")
        .annotate(all_longest_ms=Max("longest_ms"), **totals)
        .order_by(f"-all_{order}", "name")
    )
    return [Tally(**_plain(row)) for row in rows[:most]]


def lock_tallies(
    reader: User,
    *,
    days: int = 1,
    server: str = "",
    order: str = "write_held_ms",
    most: int | None = None,
) -> list[LockTally]:
    """Return who waited for locks and held them, by one of the columns.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = _of_days(LockSum.objects.all(), days=days, server=server)
    totals = {f"all_{name}": Sum(name) for name in ("commands", *_HELD)}
    wait = Sum(F("read_wait_ms") + F("write_wait_ms"))
    longest = {f"all_{name}": Max(name) for name in _LONGEST_LOCKS}
    rows = (
        sums.values("table", "user", "command")
        .annotate(all_wait_ms=wait, **totals, **longest)
        .filter(**{f"all_{order}__gt": 0})
        .order_by(f"-all_{order}", "table", "user", "command")
    )
    return [LockTally(**_plain(row)) for row in rows[:most]]


def moments(reader: User, *, days: int = 1, server: str = "") -> list[Moment]:
    """Return what commands took hour by hour or day by day, oldest first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = LogSum.objects.filter(by=LogSum.By.COMMAND)
    totals = {f"all_{name}": Sum(name) for name in ("commands", "lapse_ms", "wait_ms")}
    rows = _of_days(sums, days=days, server=server).values("at").annotate(**totals)
    return [Moment(**_plain(row)) for row in rows.order_by("at")]


def _of_days(sums: QuerySet[Any], *, days: int, server: str) -> QuerySet[Any]:
    is_short = days <= HOURS_UP_TO_DAYS
    begin = Now() - dt.timedelta(days=days)
    span, since = (
        (Span.HOUR, TruncHour(begin)) if is_short else (Span.DAY, TruncDay(begin))
    )
    found = sums.order_by().filter(span=span, at__gte=since)
    return found.filter(log__server__name=server) if server else found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("all_"): value for name, value in row.items()}
