"""Request workspaces: a repeated request makes one workspace."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.audit_log.actions import record_event
from provisioner.catalog.queries import default_snapshot
from provisioner.engine.starting import start_operation
from provisioner.leases.warnings import plan_first_warnings
from provisioner.limits.admission import check_admission, check_claim
from provisioner.workspace_requests.claim import (
    hand_out,
    hold_pool,
    lock_member,
    why_cold,
)
from provisioner.workspace_requests.requests import Terms, WorkspaceRequest, terms_of
from provisioner.workspaces.actions.making import (
    insert_workspace,
    lock_snapshot,
    name_for,
    next_id,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.requests import (
    find_first_request,
    find_second_click,
    one_request_at_a_time,
)


def workspace_create(request: WorkspaceRequest) -> Workspace:
    """Answer a request: repeat an earlier answer, claim a member, or provision.

    Raises: InvalidRequest, OutOfScope, LeaseTooLong, AccountIncomplete, NoSnapshot,
    NoGoodSnapshot, SnapshotGone, SnapshotWithdrawn, PurposeNotSupported, NameTaken,
    RequestKeyReused, LimitReached.
    """
    request.check()
    with transaction.atomic():
        one_request_at_a_time(request.by, key=request.request_key)
        earlier = repeat(request)
        if earlier is not None:
            return earlier
        terms = terms_of(request)
        workspace = claim(request, terms) or provision(request, terms)
        plan_first_warnings(workspace, terms.policy, now=terms.now)
    return workspace


def repeat(request: WorkspaceRequest) -> Workspace | None:
    """Return the workspace of an earlier identical request, or None.

    Raises: RequestKeyReused.
    """
    earlier = None
    if request.request_key:
        earlier = find_first_request(
            by=request.by, key=request.request_key, fingerprint=request.fingerprint
        )
    elif not request.name and request.purpose == Workspace.Purpose.DEVELOPMENT:
        earlier = find_second_click(
            by=request.by,
            template=request.template,
            snapshot=request.snapshot
            or default_snapshot(request.template, quality=request.quality),
            wants_reconcile=request.wants_reconcile,
        )
    if earlier is not None:
        earlier.was_asked_for_before = True
    return earlier


def claim(request: WorkspaceRequest, terms: Terms) -> Workspace | None:
    """Claim a member of a warm pool; None if no ready one fits.

    Raises: LimitReached, NameTaken.
    """
    if request.wants_reconcile or terms.pool is None:
        return None
    member = lock_member(
        terms.pool,
        snapshot=terms.snapshot,
        client_type=terms.client_type,
        now=terms.now,
    )
    if member is None:
        return None
    check_claim(by=request.by)
    hand_out(member, now=terms.now, **_asked_for(request, terms, pk=member.pk))
    record_event(
        member,
        kind="workspace_claimed",
        message=f"Requested a clone of {request.template.name} at change "
        f"{terms.snapshot.change}, and claimed one from a warm pool.",
        actor=request.by,
        data={
            "pool": member.pool_id,
            "made_as": member.made_as,
            "seconds_saved": member.seconds_saved,
        },
    )
    return member


def provision(request: WorkspaceRequest, terms: Terms) -> Workspace:
    """Create the row of a new workspace and queue its first steps.

    Raises: SnapshotGone, LimitReached, NameTaken.
    """
    by, template, snapshot = request.by, request.template, terms.snapshot
    pool = terms.pool if terms.pool and hold_pool(terms.pool) else None
    cold_reason = why_cold(
        pool,
        template=template,
        snapshot=snapshot,
        client_type=terms.client_type,
        wants_reconcile=request.wants_reconcile,
        now=terms.now,
    )
    lock_snapshot(snapshot)
    check_admission(by=by, template=template, snapshot=snapshot)
    pk = next_id()
    workspace = insert_workspace(
        **_asked_for(request, terms, pk=pk),
        pk=pk,
        owner=by,
        site=template.site,
        template=template,
        snapshot=snapshot,
        purpose=request.purpose,
        client_type=terms.client_type,
        wants_reconcile=request.wants_reconcile,
        pool=pool,
        cold_reason=cold_reason or "",
        uid=by.uid,
        gid=by.gid,
        p4_user=by.perforce_name,
    )
    record_event(
        workspace,
        kind="workspace_requested",
        message=f"Requested a clone of {template.name} at change {snapshot.change}.",
        actor=by,
    )
    start_operation(WorkspaceOperation.PROVISION, about=workspace, by=by)
    return workspace


def _asked_for(request: WorkspaceRequest, terms: Terms, *, pk: int) -> dict[str, Any]:
    """Return the columns that a request sets, for new clones and claimed ones."""
    name = request.name or name_for(
        pk, owner=request.by, template=request.template, purpose=request.purpose
    )
    return {
        "token": request.by.token,
        "name": name,
        "request_key": request.request_key,
        "request_fingerprint": request.fingerprint if request.request_key else "",
        "expires_at": terms.expires_at,
        "heartbeat_seconds": request.heartbeat_seconds,
    }
