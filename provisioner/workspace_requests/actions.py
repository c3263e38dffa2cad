"""Asking for a workspace: one request makes one, however often it arrives."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.engine import clocks
from provisioner.engine.tasks import start_operation
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.heartbeats import check_heartbeat
from provisioner.leases.actions.leases import end_of_first_lease
from provisioner.leases.warnings import plan_first_warnings
from provisioner.lib.refusals import (
    AccountIncomplete,
    InvalidRequest,
)
from provisioner.lib.typed_names import check_name
from provisioner.limits.admission import (
    check_admission,
    check_claim,
)
from provisioner.workspace_requests.claim import (
    find_pool,
    hand_out,
    lock_member,
    why_cold,
)
from provisioner.workspaces.actions.making import (
    _hold,
    _made_up_name,
    _next_id,
    _snapshot_to_choose,
    insert_workspace,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.purposes import client_type_for
from provisioner.workspaces.requests import (
    find_first_request,
    find_second_click,
    fingerprint_of,
    one_request_at_a_time,
)


def workspace_create(
    *,
    by: User,
    template: Template,
    name: str = "",
    purpose: str = Workspace.Purpose.DEVELOPMENT,
    snapshot: Snapshot | None = None,
    quality: str = "",
    wants_reconcile: bool = False,
    lease_seconds: int | None = None,
    heartbeat_seconds: int | None = None,
    request_key: str = "",
) -> Workspace:
    """Ask for a workspace of a template's snapshot; its default where none is named.

    One that lies ready in a warm pool is handed out at once; else it is made.

    With a `quality` (built, tested) it is the newest of at least that. Without a name
    one is made from the owner's and the template's. Asking again with the same
    `request_key` answers with the first request's workspace. Its lease is the usual one
    of its policy, or lasts `lease_seconds`; it ends before that if its job said nothing
    for `heartbeat_seconds`. A scoped token of `by` bounds all of it.

    Raises: InvalidRequest, OutOfScope, LeaseTooLong, AccountIncomplete, NoSnapshot,
    NoGoodSnapshot, SnapshotGone, PurposeNotSupported, NameTaken, RequestKeyReused,
    LimitReached.
    """
    _check_request(by=by, purpose=purpose, name=name)
    _check_quality(quality, snapshot=snapshot)
    check_heartbeat(heartbeat_seconds)
    permissions.require_in_scope(by, template=template, purpose=purpose)
    fingerprint = fingerprint_of(
        template=template.pk,
        name=name,
        purpose=str(purpose),
        snapshot=snapshot and snapshot.pk,
        quality=quality,
        reconcile=wants_reconcile,
        lease=lease_seconds,
        heartbeat=heartbeat_seconds,
    )
    with transaction.atomic():
        one_request_at_a_time(by, key=request_key)
        earlier = None
        if request_key:
            earlier = find_first_request(
                by=by, key=request_key, fingerprint=fingerprint
            )
        elif not name and purpose == Workspace.Purpose.DEVELOPMENT:
            earlier = find_second_click(
                by=by,
                template=template,
                snapshot=snapshot or default_snapshot(template, quality=quality),
                wants_reconcile=wants_reconcile,
            )
        if earlier is not None:
            earlier.was_asked_for_before = True
            return earlier
        now = clocks.database_now()
        policy = lease_queries.policy_for(template, purpose)
        expires_at = end_of_first_lease(
            by=by, policy=policy, lease_seconds=lease_seconds, now=now
        )
        snapshot = _snapshot_to_choose(template, snapshot, quality=quality)
        client_type = client_type_for(purpose, server=template.site.perforce_server)
        workspace, pool, cold_reason = None, None, ""
        if not wants_reconcile:
            workspace = lock_member(
                by=by,
                template=template,
                purpose=purpose,
                snapshot=snapshot,
                client_type=client_type,
                now=now,
            )
        if workspace is None:
            pool = find_pool(by=by, template=template, purpose=purpose)
            cold_reason = why_cold(
                pool,
                template=template,
                snapshot=snapshot,
                client_type=client_type,
                wants_reconcile=wants_reconcile,
                now=now,
            )
            _hold(snapshot)
            check_admission(by=by, template=template, snapshot=snapshot)
        else:
            check_claim(by=by)
        pk = workspace.pk if workspace is not None else _next_id()
        name = name or _made_up_name(pk, owner=by, template=template, purpose=purpose)
        asked: dict[str, Any] = {
            "token": by.token,
            "name": name,
            "request_key": request_key,
            "request_fingerprint": fingerprint if request_key else "",
            "expires_at": expires_at,
            "heartbeat_seconds": heartbeat_seconds,
        }
        is_warm = workspace is not None
        if workspace is not None:
            hand_out(workspace, now=now, **asked)
        else:
            workspace = insert_workspace(
                **asked,
                pk=pk,
                owner=by,
                site=template.site,
                template=template,
                snapshot=snapshot,
                purpose=purpose,
                client_type=client_type,
                wants_reconcile=wants_reconcile,
                pool=pool,
                cold_reason=cold_reason,
                uid=by.uid,
                gid=by.gid,
                p4_user=by.perforce_name,
            )
        plan_first_warnings(workspace, policy, now=now)
        if is_warm:
            _record_claim(workspace, by=by)
        else:
            record_event(
                workspace,
                kind="workspace_requested",
                message=f"Asked for a clone of {template.name} at change "
                f"{snapshot.change}.",
                actor=by,
            )
            start_operation(WorkspaceOperation.PROVISION, by=by, about=workspace)
    return workspace


def _record_claim(workspace: Workspace, *, by: User) -> None:
    record_event(
        workspace,
        kind="workspace_claimed",
        message=f"Asked for a clone of {workspace.template.name} at change "
        f"{workspace.snapshot.change}, and got one that lay ready.",
        actor=by,
        data={
            "pool": workspace.pool_id,
            "made_as": workspace.made_as,
            "seconds_saved": workspace.seconds_saved,
        },
    )


def _check_request(*, by: User, purpose: str, name: str) -> None:
    if by.uid is None or by.gid is None:
        raise AccountIncomplete(username=by.username)
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    if name:
        check_name(name)


def _check_quality(quality: str, *, snapshot: Snapshot | None) -> None:
    if not quality:
        return
    if snapshot is not None:
        raise InvalidRequest("Choose a snapshot or a quality, one of the two.")
    if quality not in Template.WantedQuality.values:
        raise InvalidRequest(f"There is no quality “{quality}” to ask for.")
