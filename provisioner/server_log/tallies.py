"""What commands of Perforce servers took over a time, from the sums of their logs.

No number of these is counted from commands: there are millions of these.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

from django.db import models
from django.db.models import F, FloatField, Max, Q, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Concat

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.server_log.models import LockSum, LogSum, Origin
from provisioner.server_log.periods import Period

DEFAULT_BY = LogSum.By.COMMAND.value
DEFAULT_ORDER = "lapse_ms"
DEFAULT_LOCK_ORDER = "write_held_ms"
_SUMMED = (
    *("commands", "failed", "over_30s", "over_60s", "over_120s", "lapse_ms"),
    *("cpu_ms", "wait_ms", "held_ms", "files_sent", "sent_mb", "rows_scanned"),
)
_LONGEST = ("longest_ms", "most_rows")
_LOCKS_SUMMED = (
    *("commands", "read_wait_ms", "write_wait_ms", "read_held_ms", "write_held_ms"),
)
_LOCKS_LONGEST = ("longest_wait_ms", "longest_held_ms")
_WAITED_MS = F("read_wait_ms") + F("write_wait_ms")
# Up to this many names are ranked first, and only theirs are added up. With more it is
# faster to add up all.
_FEW = 200
_BETWEEN = "\n"
_TOGETHER = Concat(
    *("table", Value(_BETWEEN), "user", Value(_BETWEEN), "command"),
    output_field=TextField(db_collation="C"),
)
OURS_MARKED = ("user-sync", "user-flush")


class Whose(models.TextChoices):
    """Whose commands are asked for, by their origin."""

    ALL = "", "With builds"
    WITHOUT_BUILDS = "without-builds", "Without builds"
    BUILDS = Origin.BUILDS.value, "Only builds"
    OURS = Origin.OURS.value, "Only Cloneyard"


class LockBy(models.TextChoices):
    """What sums of locks have in common."""

    TABLE = "table", "Table"
    USER = "user", "User"
    COMMAND = "command", "Table, user and command"


_LOCK_NAMES = {
    LockBy.TABLE: ("table",),
    LockBy.USER: ("user",),
    LockBy.COMMAND: ("table", "user", "command"),
}


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
    rows_scanned: int
    most_rows: int

    @property
    def mean_ms(self) -> int:
        return self.lapse_ms // max(self.commands, 1)

    @property
    def sent_bytes(self) -> int:
        return self.sent_mb * 2**20


TALLIED = tuple(field.name for field in fields(Tally))


@dataclass(frozen=True, kw_only=True)
class LockTally:
    """What commands waited for tables' locks and held them; times in milliseconds.

    `table`, `user` and `command` are what they have in common, "" what they have not.
    """

    table: str = ""
    user: str = ""
    command: str = ""
    commands: int
    read_held_ms: int
    write_held_ms: int
    read_wait_ms: int
    write_wait_ms: int
    wait_ms: int
    longest_wait_ms: int
    longest_held_ms: int


LOCKS_TALLIED = tuple(field.name for field in fields(LockTally))
LOCK_ORDERS = tuple(name for name in LOCKS_TALLIED if name not in LockBy.values)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What the commands that began in an hour or a day took.

    `ours_ms` is the part of our own syncs and flushes.
    """

    at: dt.datetime
    commands: int
    lapse_ms: int
    wait_ms: int
    ours_ms: int


def tallies(
    reader: User,
    *,
    period: Period,
    by: str = DEFAULT_BY,
    server: str = "",
    whose: str = "",
    order: str = DEFAULT_ORDER,
    most: int | None = None,
) -> list[Tally]:
    """Return what commands took by each name, largest first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = _in_parts(LogSum.objects.filter(by=by), period, server=server, whose=whose)
    if most is not None and most <= _FEW:
        first = _largest(sums, ("name",), order=order, most=most)
        sums = sums.filter(name__in=[name for (name,) in first])
    totals = {f"all_{name}": Sum(name) for name in _SUMMED}
    longest = {f"all_{name}": Max(name) for name in _LONGEST}
    rows = (
        sums.values("name")
        .annotate(**totals, **longest)
        .order_by(f"-all_{order}", "name")
    )
    return [Tally(**_plain(row)) for row in rows[:most]]


def lock_tallies(
    reader: User,
    *,
    period: Period,
    by: str = LockBy.COMMAND,
    server: str = "",
    whose: str = "",
    order: str = DEFAULT_LOCK_ORDER,
    most: int | None = None,
) -> list[LockTally]:
    """Return who waited for locks and held them, by one of the columns.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    kind = LockSum.By.TABLE if by == LockBy.TABLE else LockSum.By.COMMAND
    sums = _in_parts(
        LockSum.objects.filter(by=kind), period, server=server, whose=whose
    )
    if most is not None and most <= _FEW and by == LockBy.COMMAND:
        [found] = _worst(sums, orders=(order,), most=most)
        return found
    names = _LOCK_NAMES[LockBy(by)]
    rows = (
        _summed(sums, names)
        .filter(**{f"all_{order}__gt": 0})
        .order_by(f"-all_{order}", *names)
    )
    return [LockTally(**_plain(row)) for row in rows[:most]]


def worst_lock_tallies(
    reader: User,
    *,
    period: Period,
    orders: Sequence[str],
    most: int,
    server: str = "",
    whose: str = "",
) -> list[list[LockTally]]:
    """Return the first of `lock_tallies` by command in each order.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = LockSum.objects.filter(by=LockSum.By.COMMAND)
    sums = _in_parts(sums, period, server=server, whose=whose)
    return _worst(sums, orders=orders, most=most)


def _worst(
    sums: QuerySet[LockSum], *, orders: Sequence[str], most: int
) -> list[list[LockTally]]:
    """Return the first tallies of locks by command in each of these orders."""
    names = _LOCK_NAMES[LockBy.COMMAND]
    first = {
        names_of
        for order in orders
        for names_of in _largest(
            sums, names, order=order, most=most, is_above_zero=True
        )
    }
    # The users alone first, which is the cheaper question.
    ours = sums.alias(together=_TOGETHER).filter(
        user__in={user for _, user, _ in first},
        together__in=[_BETWEEN.join(names_of) for names_of in first],
    )
    found = [LockTally(**_plain(row)) for row in _summed(ours, names)]
    return [
        sorted(
            (each for each in found if getattr(each, order)),
            key=lambda each: (
                -getattr(each, order),
                *(getattr(each, name) for name in names),
            ),
        )[:most]
        for order in orders
    ]


def _summed(sums: QuerySet[LockSum], names: Sequence[str]) -> QuerySet[Any]:
    totals = {f"all_{name}": Sum(name) for name in _LOCKS_SUMMED}
    longest = {f"all_{name}": Max(name) for name in _LOCKS_LONGEST}
    found: QuerySet[Any] = sums.values(*names).annotate(
        all_wait_ms=Sum(_WAITED_MS), **totals, **longest
    )
    return found


def _largest(
    sums: QuerySet[Any],
    names: Sequence[str],
    *,
    order: str,
    most: int,
    is_above_zero: bool = False,
) -> list[tuple[str, ...]]:
    """Return the names of those that are largest by one number, added up alone.

    To add up all numbers of all names takes several times as long. As floats: to sort
    and to add up numbers of any size takes twice the time.
    """
    number: Any = (
        _WAITED_MS if sums.model is LockSum and order == "wait_ms" else F(order)
    )
    if is_above_zero:
        sums = sums.alias(number=number).filter(number__gt=0)
    total = Max if order in (*_LONGEST, *_LOCKS_LONGEST) else Sum
    ranked = sums.values(*names).annotate(rank=total(Cast(number, FloatField())))
    return list(ranked.order_by("-rank", *names).values_list(*names)[:most])


def moments(
    reader: User, *, period: Period, server: str = "", whose: str = ""
) -> list[Moment]:
    """Return what commands took hour by hour or day by day, oldest first.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    sums = LogSum.objects.filter(by=LogSum.By.COMMAND)
    totals = {f"all_{name}": Sum(name) for name in ("commands", "lapse_ms", "wait_ms")}
    of_ours = Q(origin=Origin.OURS, name__in=OURS_MARKED)
    ours = Sum("lapse_ms", filter=of_ours, default=0)
    rows = of_whose(
        sums.order_by().filter(
            span=period.span, at__gte=period.begin, at__lt=period.end
        ),
        whose,
    )
    if server:
        rows = rows.filter(log__server__name=server)
    moments = rows.values("at").annotate(all_ours_ms=ours, **totals).order_by("at")
    return [Moment(**_plain(row)) for row in moments]


def of_whose(rows: QuerySet[Any], whose: str) -> QuerySet[Any]:
    """Return those rows that have the origin which is asked for, a value of Whose."""
    if not whose:
        return rows
    # One of them as it is: an index of ours is found by it.
    origins = origins_of(whose)
    if len(origins) == 1:
        return rows.filter(origin=origins[0])
    return rows.filter(origin__in=origins)


def origins_of(whose: str) -> list[str]:
    """Return the origins that a value of Whose stands for."""
    if whose == Whose.WITHOUT_BUILDS:
        return [Origin.PEOPLE.value, Origin.OURS.value]
    return [whose] if whose else list(Origin.values)


def _in_parts(
    sums: QuerySet[Any], period: Period, *, server: str, whose: str
) -> QuerySet[Any]:
    """Return the sums that make up a period, by the week where they can."""
    parts = (
        Q(span=span, at__gte=begin, at__lt=end) for span, begin, end in period.parts
    )
    found = of_whose(sums.order_by().filter(reduce(operator.or_, parts)), whose)
    return found.filter(log__server__name=server) if server else found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("all_"): value for name, value in row.items()}
