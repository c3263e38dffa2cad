"""Repeated requests: a retry, a lost answer, a second click."""

from __future__ import annotations

import datetime as dt

from provisioner.lib import clocks
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.actions.making import one_request_at_a_time
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import RequestKeyReused

KEYS_KEPT = dt.timedelta(days=7)
"""How long a key identifies its first request."""


def find_earlier(request: WorkspaceRequest) -> Workspace | None:
    """Return the workspace of an earlier identical request, or None.

    Requests of a person with the same key wait until the transaction ends. Call it
    before anything else takes a lock.

    Raises: RequestKeyReused.
    """
    one_request_at_a_time(request.by, key=request.request_key)
    if request.request_key:
        earlier = _with_the_key(request)
    elif not request.name and request.purpose == Workspace.Purpose.DEVELOPMENT:
        earlier = _second_click(request)
    else:
        return None
    if earlier is not None:
        earlier.was_asked_for_before = True
    return earlier


def _with_the_key(request: WorkspaceRequest) -> Workspace | None:
    """Return the workspace that the first request with this key made, or None.

    A refused request made nothing, so its key is free. A key older than KEYS_KEPT is
    removed from its workspace and can be used again.

    Raises: RequestKeyReused if the first request differs, or the current token must not
    see what it made.
    """
    by = request.by
    same = Workspace.objects.filter(owner=by, request_key=request.request_key)
    if not same.exists():
        return None
    first = same.get()
    if first.created_at <= clocks.database_now() - KEYS_KEPT:
        Workspace.objects.filter(pk=first.pk).update(request_key="")
        return None
    is_others = by.scope is not None and first.token_id != by.scope.pk
    if first.request_fingerprint != request.fingerprint or is_others:
        raise RequestKeyReused
    return first


def _second_click(request: WorkspaceRequest) -> Workspace | None:
    """Return a development workspace still being created by an identical request.

    For requests without key and name. Machines send many identical requests, so for
    other purposes each is a new one.
    """
    return (
        Workspace.objects.select_related("site", "template")
        .filter(
            owner=request.by,
            token=request.by.token,
            request_fingerprint=request.fingerprint,
            request_key="",
            state=Workspace.State.PROVISIONING,
        )
        .first()
    )
