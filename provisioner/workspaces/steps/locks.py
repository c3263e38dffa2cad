"""Locked clients: one is unlocked while it is retired, and gets its lock back.

The client's row records that the lock is to be given back, as the retirement may end in
any way and another operation may continue.
"""

from __future__ import annotations

import dataclasses

from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.states import client_of, move_client_lock
from provisioner.workspaces.steps.clients import find_own_client
from provisioner.workspaces.steps.run import WorkspaceRun


def is_locked(client: ClientSpec) -> bool:
    """Return whether only its owner may use a client."""
    return "locked" in client.options.split()


def locked(client: ClientSpec) -> ClientSpec:
    options = client.options.replace(" unlocked", " locked")
    return dataclasses.replace(client, options=options)


def unlocked(client: ClientSpec) -> ClientSpec:
    options = client.options.replace(" locked", " unlocked")
    return dataclasses.replace(client, options=options)


def unlock(run: WorkspaceRun) -> None:
    """Unlock a client for others than its owner; record that it was locked."""
    client = find_own_client(run)
    if client is None or not is_locked(client):
        return
    move_client_lock(client_of(run.workspace), is_unlocked=True, by=run.step)
    run.perforce.clients.save(unlocked(client), past_lock=True)


def give_back(run: WorkspaceRun) -> None:
    """Lock the client again if we unlocked it. Safe to repeat."""
    kept = client_of(run.workspace)
    if not kept.is_unlocked:
        return
    client = find_own_client(run)
    if client is not None and not is_locked(client):
        run.perforce.clients.save(locked(client))
    move_client_lock(kept, is_unlocked=False, by=run.step)
