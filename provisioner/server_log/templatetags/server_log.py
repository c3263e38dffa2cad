"""Addresses of the commands behind a message, and of the messages behind a command."""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlencode

from django import template
from django.urls import reverse

from provisioner.server_log.models import LogCommand, LogMessage

register = template.Library()

# A message says whose it is by the number of a process alone, and numbers are used
# again.
LOOKED_BACK = dt.timedelta(hours=1)
SECOND = dt.timedelta(seconds=1)


@register.filter
def commands_behind(message: LogMessage) -> str:
    """Return the address of what its process began in the hour before, newest first."""
    return _rows(
        "server-command-list",
        message,
        since=message.at - LOOKED_BACK,
        until=message.at + SECOND,
    )


@register.filter
def messages_of(command: LogCommand) -> str:
    """Return the address of what its process was told while it ran."""
    return _rows(
        "server-message-list",
        command,
        since=command.started_at,
        until=(command.ended_at or command.started_at + LOOKED_BACK) + SECOND,
    )


def _rows(
    url_name: str,
    of: LogCommand | LogMessage,
    *,
    since: dt.datetime,
    until: dt.datetime,
) -> str:
    times = {"since": since.isoformat(), "until": until.isoformat()}
    asked = {"server": of.log.server.name, "pid": of.pid, **times}
    return f"{reverse(url_name)}?{urlencode(asked)}"
