"""Recognize repeated requests: a retry, a lost answer, a second click."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any

from django.db import connection

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.lib import clocks
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import RequestKeyReused

KEYS_KEPT = dt.timedelta(days=7)
"""How long a key identifies its first request."""


def one_request_at_a_time(owner: User, *, key: str = "") -> None:
    """Serialize a person's requests with the same key until the transaction ends.

    Requests without a key share a lock. Take this lock before any other.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('workspace_create'), hashtext(%s))",
            [f"{owner.pk}:{key}"],
        )


def fingerprint_of(**asked: Any) -> str:
    """Return a digest of a request: equal requests have equal digests."""
    text = json.dumps(asked, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def find_first_request(
    *, by: User, key: str, fingerprint: str, now: dt.datetime | None = None
) -> Workspace | None:
    """Return the workspace that the first request with this key made, or None.

    A refused request made nothing, so its key is free. A key older than KEYS_KEPT is
    removed from its workspace and can be used again. Call it with
    one_request_at_a_time.

    Raises: RequestKeyReused if the first request differs, or the current token must not
    see what it made.
    """
    same = Workspace.objects.filter(owner=by, request_key=key)
    if not same.exists():
        return None
    first = same.get()
    if first.created_at <= (now or clocks.database_now()) - KEYS_KEPT:
        Workspace.objects.filter(pk=first.pk).update(request_key="")
        return None
    is_others = by.scope is not None and first.token_id != by.scope.pk
    if first.request_fingerprint != fingerprint or is_others:
        raise RequestKeyReused
    return first


def find_second_click(
    *, by: User, template: Template, snapshot: Snapshot | None, wants_reconcile: bool
) -> Workspace | None:
    """Return a development workspace still being created by an identical request.

    For requests without key and name. Machines send many identical requests, so for
    other purposes each is a new one.
    """
    return (
        Workspace.objects.select_related("site", "template")
        .filter(
            owner=by,
            token=by.token,
            template=template,
            snapshot=snapshot or default_snapshot(template),
            purpose=Workspace.Purpose.DEVELOPMENT,
            wants_reconcile=wants_reconcile,
            state=Workspace.State.PROVISIONING,
            request_key="",
        )
        .first()
    )
