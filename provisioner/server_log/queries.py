"""Logs of Perforce servers, and the commands in them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib.rows import with_words
from provisioner.server_log.models import LogCommand, ServerLog
from provisioner.sites.models import PerforceServer

DEFAULT_DAYS = 1
SEARCHED = ("user", "client", "host", "program", "command", "arguments")


def log_of(server: PerforceServer) -> ServerLog:
    """Return the log of a server; one that is not followed, if it has none yet."""
    known = ServerLog.objects.filter(server=server).first()
    return known or ServerLog(server=server, is_followed=False)


def logs_visible_to(user: User) -> QuerySet[ServerLog]:
    """Return all to administrators, none to others; by the names of their servers."""
    logs = ServerLog.objects.select_related("server").order_by("server__name")
    return logs if permissions.can_administer(user) else logs.none()


def commands_matching(
    reader: User,
    /,
    *,
    text: str = "",
    days: int | str = DEFAULT_DAYS,
    at_least: int | str = 0,
    server: str = "",
    **criteria: Any,
) -> QuerySet[LogCommand]:
    """Return the commands of the last days with all words in one of their columns.

    `at_least` is how many seconds they took, and `server` the name of theirs.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(reader))
    since = Now() - dt.timedelta(days=int(days or DEFAULT_DAYS))
    commands = LogCommand.objects.select_related("log__server")
    commands = with_words(commands, text, *SEARCHED).filter(started_at__gte=since)
    if at_least:
        commands = commands.filter(lapse_ms__gte=1000 * int(at_least))
    if server:
        commands = commands.filter(log__server__name=server)
    return commands.filter(
        **{name: value for name, value in criteria.items() if value != ""}
    )
