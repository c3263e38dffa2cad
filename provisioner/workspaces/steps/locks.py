"""Locked clients: one is unlocked while it is retired, and gets its lock back.

How it was is remembered on the step that unlocked it, for as long as it is owed: the
retirement may end in any way, and another operation may go on.
"""

from __future__ import annotations

import dataclasses

from django.db.models import QuerySet

from provisioner.engine import states as engine_states
from provisioner.engine.models import Step
from provisioner.workspaces.steps.clients import find_own_client
from provisioner.workspaces.steps.run import WorkspaceRun

REMEMBERED = "client_options"


def unlock(run: WorkspaceRun) -> None:
    """Have a client that others than its owner may use; how it was is remembered."""
    client = find_own_client(run)
    if client is None or " locked" not in client.options:
        return
    engine_states.remember_remote(run.step, {REMEMBERED: client.options})
    unlocked = client.options.replace(" locked", " unlocked")
    run.perforce.clients.save(
        dataclasses.replace(client, options=unlocked), past_lock=True
    )


def options_before(run: WorkspaceRun) -> str:
    """Return the options of the client before we unlocked it, "" if we did not."""
    last = _owed(run).last()
    return "" if last is None else str(last.remote[REMEMBERED])


def give_back(run: WorkspaceRun) -> None:
    """Have the client as locked as it was before we unlocked it. Safe to repeat."""
    options = options_before(run)
    if not options:
        return
    client = find_own_client(run)
    if client is not None and client.options != options:
        run.perforce.clients.save(dataclasses.replace(client, options=options))
    forget(run)


def forget(run: WorkspaceRun) -> None:
    """Owe the client nothing more: it is as it was."""
    for step in _owed(run):
        engine_states.remember_remote(step, {REMEMBERED: ""})


def _owed(run: WorkspaceRun) -> QuerySet[Step]:
    """Return the steps that unlocked this client, in the order of their operations."""
    return (
        Step.objects.filter(
            operation__subject__workspace=run.workspace, remote__has_key=REMEMBERED
        )
        .exclude(remote__contains={REMEMBERED: ""})
        .order_by("operation_id")
    )
