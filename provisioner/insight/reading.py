"""Read the processes of a Perforce server."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.types import ServerProcess
from provisioner.insight.models import Process, ProcessEnding, ProcessReading
from provisioner.insight.programs import record_programs
from provisioner.lib import clocks
from provisioner.lib.storable import storable
from provisioner.sites.models import PerforceServer

ANSWER_WITHIN_SECONDS = 20.0
# The server tells whole seconds, and its answer takes time.
SAME_START_WITHIN = dt.timedelta(seconds=5)
# Their arguments may be secret.
_SECRET = frozenset({"passwd", "login", "login2", "trust", "configure"})


def read_processes(server: PerforceServer) -> list[ServerProcess]:
    """Read a server's processes and save them in place of those before.

    Raises: GatewayError, which is saved as the trouble; the rows of before stay.
    """
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    try:
        found = gateway.processes.list()
    except GatewayError as error:
        ProcessReading.objects.update_or_create(
            server=server, defaults={"trouble": error.sentence}
        )
        raise
    now = clocks.database_now()
    rows = [row_of(server, process, now=now) for process in found]
    with transaction.atomic():
        ProcessReading.objects.update_or_create(
            server=server, defaults={"read_at": now, "trouble": ""}
        )
        there = [row.number for row in rows]
        Process.objects.filter(server=server).exclude(number__in=there).delete()
        Process.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["server", "number"],
            update_fields=[
                *("state", "user", "program", "client", "host"),
                *("command", "arguments", "started_at"),
            ],
        )
        record_programs(server, rows, now=now)
    return found


def is_the_one(process: ServerProcess, ending: ProcessEnding) -> bool:
    """Return whether a process is the one whose end was requested.

    By then its number may belong to another one, or its connection to a later command.
    """
    started = clocks.database_now() - dt.timedelta(seconds=process.seconds)
    return (
        storable(process.user) == ending.user
        and storable(process.command) == ending.command
        and abs(started - ending.started_at) < SAME_START_WITHIN
    )


def row_of(
    server: PerforceServer, process: ServerProcess, *, now: dt.datetime
) -> Process:
    """Return the row of a process, without arguments that may be secret."""
    arguments = "***" if process.command in _SECRET else process.arguments
    return Process(
        server=server,
        number=process.number,
        state=process.state,
        user=storable(process.user),
        program=storable(process.program),
        client=storable(process.client),
        host=storable(process.host),
        command=storable(process.command),
        arguments=storable(arguments),
        started_at=now - dt.timedelta(seconds=process.seconds),
    )
