"""The waits for locks in a server's log, and for whom each was."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.server_log.blocking import (
    Blocked,
    Culprit,
    TableUse,
    blocked_of,
    culprits_of,
)
from provisioner.server_log.models import LogCommand, LogTableUse
from provisioner.sites.models import PerforceServer

# Shorter ones are what a busy server does all the time.
WORTH_TELLING_MS = 100
# The longest of a time: the rest adds little, and each is compared with all holders.
MOST_WAITS = 500
MOST_HOLDS = 1000
# A command that holds a table may have begun so long before.
LONGEST_COMMAND = dt.timedelta(days=1)
LONGEST_SPAN = dt.timedelta(days=1)
_WITH_ONE_LOCK = ("db.", "rdb.", "meta/", "storageup/", "replica/")


@dataclass(frozen=True, kw_only=True)
class LockWaits:
    """The waits of a time at one server; `is_all` unless shorter ones were left out."""

    since: dt.datetime
    until: dt.datetime
    blocked: list[Blocked]
    is_all: bool

    @property
    def culprits(self) -> list[Culprit]:
        return culprits_of(self.blocked)

    @property
    def unexplained(self) -> int:
        return sum(each.by is None for each in self.blocked)


BLOCKED = (
    *("began", "table", "user", "command", "read_wait_ms", "write_wait_ms"),
    *("by_user", "by_command", "by_began", "by_held_ms"),
    *("through_user", "through_command"),
)


def row_of(blocked: Blocked) -> tuple[str | int | dt.datetime | None, ...]:
    """Return a wait as the columns of BLOCKED."""
    waiter, by, through = blocked.waiter, blocked.by, blocked.through
    return (
        *(waiter.began, waiter.table, waiter.user, waiter.command),
        *(waiter.read_wait_ms, waiter.write_wait_ms),
        *((by.user, by.command, by.began, by.held_ms) if by else (None,) * 4),
        *((through.user, through.command) if through else (None,) * 2),
    )


def lock_waits(
    reader: User,
    *,
    server: PerforceServer,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> LockWaits:
    """Return the longest waits of commands that began in a time, and for whom.

    By itself the last day. A longer time ends a day after it begins.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    last = until or clocks.database_now()
    first = since or last - LONGEST_SPAN
    last = min(last, first + LONGEST_SPAN)
    uses = LogTableUse.objects.filter(log__server=server)
    within = uses.filter(started_at__gte=first, started_at__lt=last).annotate(
        wait_ms=F("read_wait_ms") + F("write_wait_ms")
    )
    waiting = list(
        within.filter(wait_ms__gte=WORTH_TELLING_MS).order_by("-wait_ms", "pk")[
            : MOST_WAITS + 1
        ]
    )
    holding = uses.filter(
        started_at__gte=first - LONGEST_COMMAND,
        started_at__lt=last,
        ended_at__gte=first,
    )
    holds = _longest(holding, "write_held_ms", waited_for=waiting)
    # Apart: long reads are many, and hold up only writes.
    writes = [use for use in (*waiting, *holds) if use.write_wait_ms]
    holds += _longest(holding, "read_held_ms", waited_for=writes)
    waiters = {use.pk: _use_of(use) for use in waiting[:MOST_WAITS]}
    holders = {use.pk: _use_of(use) for use in holds if use.pk not in waiters}
    return LockWaits(
        since=first,
        until=last,
        blocked=blocked_of(waiters.values(), [*waiters.values(), *holders.values()]),
        is_all=len(waiting) <= MOST_WAITS,
    )


def _longest(
    holding: QuerySet[LogTableUse], kind: str, *, waited_for: Iterable[LogTableUse]
) -> list[LogTableUse]:
    """Return the longest holds of those tables that some waited for."""
    tables = {use.table for use in waited_for}
    if not tables:
        return []
    long = holding.filter(table__in=tables, **{f"{kind}__gte": WORTH_TELLING_MS})
    return list(long.order_by(f"-{kind}", "pk")[:MOST_HOLDS])


def locks_of(command: LogCommand) -> list[Blocked]:
    """Return a command's long waits and holds, and for whom it waited, by table.

    `by` is None for those that did not wait, too.
    """
    own = list(
        LogTableUse.objects.filter(
            command_id=command.pk, started_at=command.started_at
        ).order_by("table")
    )
    waits = [_use_of(use) for use in own if _has_waited(use)]
    held = [_use_of(use) for use in own if not _has_waited(use)]
    if not waits:
        return [Blocked(waiter=use, by=None) for use in held]
    began, ended = command.started_at, waits[0].ended
    others = (
        LogTableUse.objects.filter(
            log=command.log_id,
            table__in=[use.table for use in waits],
            started_at__gte=began - LONGEST_COMMAND,
            started_at__lte=ended,
            ended_at__gte=began,
        )
        .exclude(command_id=command.pk)
        .order_by((F("read_held_ms") + F("write_held_ms")).desc(), "pk")
    )
    found = blocked_of(waits, [*waits, *map(_use_of, others[:MOST_HOLDS])])
    return [*found, *(Blocked(waiter=use, by=None) for use in held)]


def _has_waited(use: LogTableUse) -> bool:
    return use.read_wait_ms + use.write_wait_ms > 0


def _use_of(use: LogTableUse) -> TableUse:
    return TableUse(
        command_id=use.command_id,
        table=use.table,
        entity=_entity_of(use),
        user=use.user,
        command=use.command,
        began=use.started_at,
        ended=use.ended_at,
        read_wait_ms=use.read_wait_ms,
        read_held_ms=use.read_held_ms,
        write_wait_ms=use.write_wait_ms,
        write_held_ms=use.write_held_ms,
    )


def _entity_of(use: LogTableUse) -> str:
    """Return whose lock it is: tables have one, clients one each.

    What else has a lock for each entity is not named in what is stored: nobody else is
    known to have held that lock.
    """
    if use.table.startswith(_WITH_ONE_LOCK):
        return ""
    return use.client if use.table == "clients" else f"unknown, of {use.command_id}"
