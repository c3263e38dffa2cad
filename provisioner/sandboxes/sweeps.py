"""Retire sandboxes whose lease has ended, and have hosts look for their servers."""

from __future__ import annotations

import datetime as dt
import time

import structlog
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.engine.deferring import defer_once
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.p4d import P4d
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import Sandbox, SandboxHost
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sandboxes.queries import (
    expired,
    is_served,
    looked_after_at,
    waiting_for_host,
)
from provisioner.sandboxes.states import note_left_nowhere, set_sandbox_state
from provisioner.sandboxes.steps.run import program_of

log = structlog.get_logger(__name__)

LOOKS_AGAIN_AFTER_SECONDS = 2.0
"""A server that restarts itself has no process for a moment."""


@app.periodic(cron="* * * * *")
@app.task(name="sweep_sandboxes", queue="sweeps", queueing_lock="sweep_sandboxes")
def sweep_sandboxes(timestamp: int) -> None:
    """Retire what is over, and have each host look for the servers of sandboxes."""
    now = clocks.database_now()
    retire_expired(now=now)
    retire_without_hosts(now=now)
    for host in SandboxHost.objects.all():
        if looked_after_at(host).exists() and is_served(host):
            lock = f"look_for_sandboxes.{host.pk}"
            job = look_for_sandboxes.configure(queue=host.queue, queueing_lock=lock)
            defer_once(job, host_id=host.pk)


def retire_expired(*, now: dt.datetime) -> int:
    """Begin to retire the sandboxes whose lease has ended; return how many began.

    One whose retirement failed is tried again after an hour.
    """
    began = 0
    for sandbox in expired(now):
        began += _retires(sandbox, reason="Its lease has ended.")
    return began


def retire_without_hosts(*, now: dt.datetime) -> int:
    """Retire without their host what has waited for it for an hour; return how many."""
    began = 0
    for sandbox in waiting_for_host(now):
        if not is_served(sandbox.host):
            began += _retires(sandbox, without_host=True)
    return began


def _retires(sandbox: Sandbox, *, reason: str = "", without_host: bool = False) -> bool:
    try:
        sandbox_retire(
            by=system_user(),
            sandbox=sandbox,
            reason=reason,
            without_host=without_host,
        )
    except ActionRefused as refusal:
        log.info("sandbox_not_retired", sandbox_id=sandbox.pk, code=refusal.code)
        return False
    return True


@app.task(name="look_for_sandboxes")
def look_for_sandboxes(host_id: int) -> None:
    """Look on this host for the servers of its sandboxes, and note what has changed."""
    host = SandboxHost.objects.get(pk=host_id)
    for sandbox in looked_after_at(host):
        if sandbox.was_left_at_host:
            _clear(sandbox)
        else:
            _note(sandbox, is_up=_is_up(program_of(sandbox)))


def _is_up(p4d: P4d) -> bool:
    if p4d.processes():
        return True
    time.sleep(LOOKS_AGAIN_AFTER_SECONDS)
    return bool(p4d.processes())


def _note(sandbox: Sandbox, *, is_up: bool) -> None:
    """Move a sandbox that is not as it was; an operation that has begun is left."""
    if is_up == (sandbox.state == Sandbox.State.READY):
        return
    with transaction.atomic():
        rows = Sandbox.objects.select_for_update(of=("self",))
        if not rows.filter(pk=sandbox.pk, state=sandbox.state).exists():
            return
        if is_up:
            set_sandbox_state(
                sandbox, Sandbox.State.READY, message="Its server runs again."
            )
        else:
            set_sandbox_state(
                sandbox,
                Sandbox.State.STOPPED,
                code="p4d_stopped",
                message=f"Its server ended, or the host {sandbox.host.name} was "
                "restarted. All its data is there. Start it again.",
            )


def _clear(sandbox: Sandbox) -> None:
    """End here what was left of a sandbox that was retired without this host."""
    p4d = program_of(sandbox)
    found = len(p4d.processes())
    try:
        p4d.stop()
        recipe_of(sandbox).clear(sandbox)
        if sandbox.site.mounts_each:
            for volume in sandbox.volumes.all():
                volume.sandbox = sandbox
                sandbox.site.volume_mount(volume.junction_path).remove()
    except (GatewayError, OSError) as error:
        # The next minute tries again.
        log.warning("sandbox_left_at_host", sandbox_id=sandbox.pk, why=str(error))
        return
    note_left_nowhere(
        sandbox,
        message=f"The host {sandbox.host.name} is back. {found} processes of it were "
        "ended there, and nothing of it is left.",
    )
