"""Logs of Perforce servers, and the commands in them."""

from __future__ import annotations

import datetime as dt
import operator
from functools import reduce
from typing import Any

from django.db.models import Q, QuerySet, Sum

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.queues import PERFORCE, SERVER_HOST_PREFIX
from provisioner.lib import clocks
from provisioner.server_log.models import (
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
    LogUpload,
    ServerLog,
    Span,
)
from provisioner.server_log.periods import DEFAULT_DAYS
from provisioner.server_log.tallies import of_whose
from provisioner.sites.models import PerforceServer

MOST_COMPARED = 12
# Each word is one of these: no index finds a part of a name among millions.
SEARCHED = ("user", "client", "host", "program", "command")


def log_of(server: PerforceServer) -> ServerLog:
    """Return the log of a server; one that is not followed, if it has none yet."""
    known = ServerLog.objects.filter(server=server).first()
    return known or ServerLog(server=server, is_followed=False)


def queue_of(log: ServerLog) -> str:
    """Return the queue of the workers that can follow a log."""
    if log.way == ServerLog.Way.LOGTAIL:
        return PERFORCE
    return f"{SERVER_HOST_PREFIX}{log.server.name}"


def logs_visible_to(user: User) -> QuerySet[ServerLog]:
    """Return all to administrators, none to others; by the names of their servers."""
    logs = ServerLog.objects.select_related("server").order_by("server__name")
    return logs if permissions.can_administer(user) else logs.none()


def uploads_visible_to(user: User) -> QuerySet[LogUpload]:
    """Return all to administrators, none to others; the latest first."""
    uploads = LogUpload.objects.select_related("server", "uploaded_by")
    return uploads if permissions.can_administer(user) else uploads.none()


def commands_matching(
    reader: User,
    /,
    *,
    text: str = "",
    days: int | str = DEFAULT_DAYS,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    at_least: int | str = 0,
    at_least_rows: int | str = 0,
    server: str = "",
    whose: str = "",
    **criteria: Any,
) -> QuerySet[LogCommand]:
    """Return the commands of some days with all words among their names.

    They began from `since` on and before `until`: by themselves the last `days`, or
    those before `until`.
    `at_least` is how many seconds they took, `at_least_rows` how many rows they
    scanned, and `server` the name of theirs.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    commands = LogCommand.objects.select_related("log__server")
    commands = _begun(commands, days=days, since=since, until=until)
    for word in text.split():
        is_named = reduce(operator.or_, (Q(**{name: word}) for name in SEARCHED))
        commands = commands.filter(is_named)
    if at_least:
        commands = commands.filter(lapse_ms__gte=1000 * int(at_least))
    if at_least_rows:
        commands = commands.filter(rows_scanned__gte=int(at_least_rows))
    return _with_names(of_whose(commands, whose), server=server, **criteria)


def table_uses_matching(
    reader: User,
    /,
    *,
    days: int | str = DEFAULT_DAYS,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    server: str = "",
    whose: str = "",
    **criteria: Any,
) -> QuerySet[LogTableUse]:
    """Return long waits and holds of tables; the rest as in `commands_matching`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    uses = LogTableUse.objects.select_related("log__server")
    uses = _begun(uses, days=days, since=since, until=until)
    return _with_names(of_whose(uses, whose), server=server, **criteria)


def _begun(
    rows: QuerySet[Any],
    *,
    days: int | str,
    since: dt.datetime | None,
    until: dt.datetime | None,
    time: str = "started_at",
) -> QuerySet[Any]:
    within = dt.timedelta(days=int(days or DEFAULT_DAYS))
    # A time in the query itself: by that PostgreSQL plans for these days alone.
    begin = since or (until or clocks.database_now()) - within
    rows = rows.filter(**{f"{time}__gte": begin})
    return rows.filter(**{f"{time}__lt": until}) if until else rows


def _with_names(rows: QuerySet[Any], *, server: str, **criteria: Any) -> QuerySet[Any]:
    if server:
        rows = rows.filter(log__server__name=server)
    return rows.filter(
        **{name: value for name, value in criteria.items() if value != ""}
    )


def messages_matching(
    reader: User,
    /,
    *,
    days: int | str = DEFAULT_DAYS,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    server: str = "",
    **criteria: Any,
) -> QuerySet[LogMessage]:
    """Return what servers said of themselves; the rest as in `commands_matching`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    messages = LogMessage.objects.select_related("log__server")
    messages = _begun(messages, days=days, since=since, until=until, time="at")
    return _with_names(messages, server=server, **criteria)


def commands_visible_to(user: User) -> QuerySet[LogCommand]:
    """Return all to administrators, none to others."""
    commands = LogCommand.objects.select_related("log__server")
    return commands if permissions.can_administer(user) else commands.none()


def command_hours(
    server: PerforceServer, *, since: dt.datetime, until: dt.datetime
) -> list[tuple[str, dt.datetime, int, int]]:
    """Return what each command took in each whole hour of a period, oldest first.

    As its name, the hour, milliseconds and how many there were. Of those commands that
    took most time in all, MOST_COMPARED of them.
    """
    sums = _hours(server, since=since, until=until)
    totals = sums.values("name").annotate(total=Sum("lapse_ms"))
    largest = totals.order_by("-total", "name").values_list("name", flat=True)
    hours = (
        sums.filter(name__in=list(largest[:MOST_COMPARED]))
        .values("name", "at")
        .annotate(took=Sum("lapse_ms"), number=Sum("commands"))
        .order_by("at", "-took", "name")
    )
    return list(hours.values_list("name", "at", "took", "number"))


def commands_between(
    server: PerforceServer, *, since: dt.datetime, until: dt.datetime
) -> int:
    """Return how many commands began in the whole hours of a period."""
    of_all = _hours(server, since=since, until=until).aggregate(all=Sum("commands"))
    return of_all["all"] or 0


def _hours(
    server: PerforceServer, *, since: dt.datetime, until: dt.datetime
) -> QuerySet[LogSum]:
    return LogSum.objects.filter(
        log__server=server,
        span=Span.HOUR,
        by=LogSum.By.COMMAND,
        at__gte=since,
        at__lt=until,
    ).order_by()
