"""Time a probe's commands once, and save the round, whole or not at all."""

from __future__ import annotations

import datetime as dt
import socket
import time

from django.db import transaction

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, TransientGatewayError
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.lib import clocks
from provisioner.lib.storable import storable
from provisioner.probes.commands import words_of
from provisioner.probes.models import ProbePlan, ProbeRun, ProbeTime
from provisioner.sites.models import PerforceServer

ANSWER_WITHIN_SECONDS = 300.0


def client_of(server: PerforceServer) -> str:
    """Return the name of the client that a probe's commands are run from."""
    return f"cloneyard-probe-{server.name}"


def run_probe(plan: ProbePlan) -> ProbeRun:
    """Run the commands one after the other, and save how long each took.

    A server that does not answer, or asks to come back later, makes the round a gap. A
    command that it refuses, or that takes longer than five minutes, is an error of that
    command alone.
    """
    server, now = plan.server, clocks.database_now()
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    client = client_of(server)
    try:
        gateway.check_login()
        gateway.timing.ensure_client(client)
        change = gateway.changes.latest(())
        began = time.monotonic()
        times = [_timed(line, gateway, client) for line in plan.lines]
        lapse = time.monotonic() - began
    except GatewayError as error:
        return save_gap(server, at=now, reason=error.sentence)
    with transaction.atomic():
        run = ProbeRun.objects.create(
            server=server,
            at=now,
            host=socket.gethostname(),
            lapse_seconds=None if any(each.error for each in times) else lapse,
            change=change,
        )
        for each in times:
            each.run = run
        ProbeTime.objects.bulk_create(times)
    return run


def save_gap(server: PerforceServer, *, at: dt.datetime, reason: str) -> ProbeRun:
    """Save that there was no round, and why."""
    return ProbeRun.objects.create(server=server, at=at, gap=storable(reason))


def _timed(line: str, gateway: PerforceGateway, client: str) -> ProbeTime:
    """Raises: TransientGatewayError (no answer, or none now)."""
    began = time.monotonic()
    try:
        seconds = gateway.timing.seconds_of(words_of(line), client=client)
    except GatewayError as error:
        is_late = time.monotonic() - began >= ANSWER_WITHIN_SECONDS
        if isinstance(error, TransientGatewayError) and not is_late:
            raise
        return ProbeTime(command=line, error=storable(error.sentence))
    return ProbeTime(command=line, seconds=seconds)
