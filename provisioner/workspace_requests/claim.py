"""Claim a member of a warm pool: one short transaction, and no remote call.

`pools/sweeps.py` makes, replaces and retires the members.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any

from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot, Template
from provisioner.lib.databases import refusing_taken
from provisioner.limits.admission import check_claim
from provisioner.mirrors.queries import default_at
from provisioner.pools import queries as pool_queries
from provisioner.pools.models import Pool
from provisioner.sites.models import Site
from provisioner.workspace_requests.requests import (
    Terms,
    WorkspaceRequest,
    columns_of,
)
from provisioner.workspaces.actions.making import UNIQUE_NAME
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import client_type_for
from provisioner.workspaces.queries import seconds_it_took

Reason = Workspace.ColdReason


def claim(request: WorkspaceRequest, terms: Terms) -> Workspace | None:
    """Claim a member of a warm pool; None if no ready one fits.

    Raises: LimitReached, NameTaken.
    """
    if request.wants_reconcile or terms.pool is None:
        return None
    member = _lock_member(
        terms.pool,
        snapshot=terms.snapshot,
        client_type=terms.client_type,
        now=terms.now,
    )
    if member is None:
        return None
    check_claim(by=request.by)
    _hand_out(member, now=terms.now, **columns_of(request, terms, pk=member.pk))
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


def hold_pool(pool: Pool) -> bool:
    """Lock a pool until the transaction ends; return whether it still exists.

    The database checks references only at the end of the transaction, too late to do
    without the pool.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pools_pool WHERE id = %s FOR KEY SHARE", [pool.pk]
        )
        return cursor.fetchone() is not None


def _lock_member(
    pool: Pool, *, snapshot: Snapshot, client_type: str, now: dt.datetime
) -> Workspace | None:
    """Return a ready member, locked until the transaction ends, or None.

    Concurrent requests get different members, since locked ones are skipped.
    """
    member = (
        pool_queries.ready_members(
            pool, snapshot=snapshot, client_type=client_type, now=now
        )
        .select_for_update(of=("self",), skip_locked=True)
        .first()
    )
    if member is not None:
        # These rows are at hand.
        member.owner, member.template, member.snapshot = (
            pool.owner,
            pool.template,
            snapshot,
        )
        member.site = pool.site
    return member


def with_ready_member(
    snapshots: Collection[Snapshot], *, places: Mapping[int, Site], by: User
) -> set[int]:
    """Return the ids of snapshots of which this person's pools have a ready member.

    `places` are the sites where they are cloned, by snapshot id. One query, and one per
    pool.
    """
    purpose = Workspace.Purpose.DEVELOPMENT
    templates = [snapshot.template_id for snapshot in snapshots]
    pools = Pool.objects.filter(owner=by, purpose=purpose, template__in=templates)
    pool_of = {(pool.template_id, pool.site_id): pool for pool in pools.order_by()}
    for of_person in pool_of.values():
        of_person.owner = by  # at hand
    return {
        snapshot.pk
        for snapshot in snapshots
        for site in [places[snapshot.pk]]
        if (pool := pool_of.get((snapshot.template_id, site.pk)))
        and pool_queries.ready_members(
            pool,
            snapshot=snapshot,
            client_type=client_type_for(purpose, site=site, owner=by),
            now=timezone.now(),
        ).exists()
    }


def _hand_out(member: Workspace, *, now: dt.datetime, **fields: Any) -> None:
    """Give a locked member to a person: requested and ready as of now.

    Raises: NameTaken, after which the transaction is over.
    """
    seconds_saved = member.seconds_saved
    if seconds_saved is None:  # it became ready since the pool was last tended
        seconds_saved = seconds_it_took(member)
    fields |= {
        "is_pooled": False,
        "made_ahead_at": member.created_at,
        "seconds_saved": seconds_saved,
        "created_at": now,
        "ready_at": now,
        "status_code": "",
        "status_message": "",
    }
    with refusing_taken(fields["name"], constraint=UNIQUE_NAME):
        Workspace.objects.filter(pk=member.pk).update(**fields)
    for field, value in fields.items():
        setattr(member, field, value)


def why_cold(
    pool: Pool | None,
    *,
    template: Template,
    site: Site,
    snapshot: Snapshot,
    client_type: str,
    wants_reconcile: bool,
    now: dt.datetime,
) -> Workspace.ColdReason | None:
    """Return why no member could be claimed.

    None: the template has no pools.
    """
    if pool is None:
        has_others = Pool.objects.filter(template=template).exists()
        return Reason.NO_POOL if has_others else None
    if wants_reconcile:
        return Reason.RECONCILE
    if snapshot != default_at(template, site):
        return Reason.OTHER_SNAPSHOT
    asked_at = pool_queries.last_asked_at(pool)
    if not pool_queries.wanted_size(pool, last_asked_at=asked_at, now=now):
        return Reason.POOL_RESTING
    ready = pool_queries.members_of(pool).filter(state=Workspace.State.READY)
    as_now = pool_queries.as_the_pool_makes_them(
        pool, snapshot=snapshot, client_type=client_type
    )
    is_young = Q(ready_at__gt=pool_queries.youngest_too_old(pool, now=now))
    # In one question: between two of them another claim may take the last.
    there = ready.aggregate(all=Count("pk"), fit=Count("pk", filter=as_now & is_young))
    is_stale = there["all"] and not there["fit"]
    return Reason.POOL_RENEWED if is_stale else Reason.POOL_EMPTY
