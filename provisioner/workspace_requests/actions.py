"""Request workspaces: a repeated request makes one workspace."""

from __future__ import annotations

from django.db import transaction

from provisioner.audit_log.actions import record_event
from provisioner.engine.starting import start_operation
from provisioner.leases.warnings import plan_first_warnings
from provisioner.limits.admission import check_admission
from provisioner.workspace_requests.claim import claim, hold_pool, why_cold
from provisioner.workspace_requests.repeats import find_earlier
from provisioner.workspace_requests.requests import (
    Terms,
    WorkspaceRequest,
    columns_of,
    terms_of,
)
from provisioner.workspaces.actions.making import (
    insert_workspace,
    lock_snapshot,
    next_id,
)
from provisioner.workspaces.models import Workspace, WorkspaceOperation


def workspace_create(request: WorkspaceRequest) -> Workspace:
    """Answer a request: repeat an earlier answer, claim a member, or provision.

    Raises: InvalidRequest, OutOfScope, LeaseTooLong, AccountIncomplete, NoSnapshot,
    NoGoodSnapshot, NothingAtSite, SnapshotNotAtSite, SnapshotGone, SnapshotWithdrawn,
    PurposeNotSupported, NameTaken, RequestKeyReused, LimitReached.
    """
    request.check()
    with transaction.atomic():
        earlier = find_earlier(request)
        if earlier is not None:
            return earlier
        terms = terms_of(request)
        workspace = claim(request, terms) or provision(request, terms)
        plan_first_warnings(workspace, terms.policy, now=terms.now)
    return workspace


def provision(request: WorkspaceRequest, terms: Terms) -> Workspace:
    """Create the row of a new workspace and queue its first steps.

    Raises: SnapshotGone, SnapshotNotAtSite, LimitReached, NameTaken.
    """
    by, template, snapshot = request.by, request.template, terms.snapshot
    pool = terms.pool if terms.pool and hold_pool(terms.pool) else None
    cold_reason = why_cold(
        pool,
        template=template,
        site=terms.site,
        snapshot=snapshot,
        client_type=terms.client_type,
        wants_reconcile=request.wants_reconcile,
        now=terms.now,
    )
    lock_snapshot(snapshot, site=terms.site)
    check_admission(
        by=by,
        template=template,
        snapshot=snapshot,
        site=terms.site,
        purpose=request.purpose,
    )
    pk = next_id()
    workspace = insert_workspace(
        **columns_of(request, terms, pk=pk),
        pk=pk,
        owner=by,
        template=template,
        snapshot=snapshot,
        purpose=request.purpose,
        client_type=terms.client_type,
        wants_reconcile=request.wants_reconcile,
        pool=pool,
        cold_reason=cold_reason or "",
    )
    record_event(
        workspace,
        kind="workspace_requested",
        message=f"Requested a clone of {template.name} at change {snapshot.change}.",
        actor=by,
    )
    start_operation(WorkspaceOperation.PROVISION, about=workspace, by=by)
    return workspace
