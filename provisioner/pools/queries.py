"""Warm pools with their wanted and actual members, and what they saved."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template, references_of
from provisioner.catalog.queries import defaults_among
from provisioner.engine.models import Operation
from provisioner.lib import weekly
from provisioner.mirrors.queries import mirrored_defaults
from provisioner.pools.models import Pool
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace

W = Workspace.State
ALIVE = (W.PROVISIONING, W.READY)


def find_pool(*, by: User, template: Template, site: Site, purpose: str) -> Pool | None:
    """Return the warm pool of a person for a template at a site, or None."""
    pools = Pool.objects.filter(template=template, site=site, purpose=purpose, owner=by)
    pool = pools.first()
    if pool is not None:
        pool.owner, pool.template, pool.site = by, template, site  # they are at hand
    return pool


def wanted_size(
    pool: Pool, *, last_asked_at: dt.datetime | None, now: dt.datetime
) -> int:
    """Return how many members the schedule wants, or half if nobody requests any."""
    size = weekly.number_at(now, pool.windows, otherwise=pool.size)
    if pool.idle_seconds is None:
        return size
    since = max(filter(None, (last_asked_at, pool.changed_at)))
    periods = int((now - since).total_seconds() // pool.idle_seconds)
    return size >> min(max(periods, 0), 64)


def last_asked_at(pool: Pool) -> dt.datetime | None:
    """Return when somebody last requested a workspace of the pool's kind."""
    return last_asked_at_of([pool]).get(pool.pk)


def members_of(pool: Pool) -> QuerySet[Workspace]:
    """Return the members of a pool in any state, oldest first."""
    return pool.workspaces.filter(is_pooled=True).there().order_by("created_at", "pk")


def as_the_pool_makes_them(pool: Pool, *, snapshot: Snapshot, client_type: str) -> Q:
    """Return the condition for members like those made now."""
    return Q(**_fields_of_new(pool, snapshot=snapshot, client_type=client_type))


def _fields_of_new(
    pool: Pool, *, snapshot: Snapshot, client_type: str
) -> dict[str, Any]:
    """Return the fields of members made now that later ones may have otherwise."""
    return {
        "site": pool.site_id,
        "snapshot": snapshot.pk,
        "client_type": client_type,
        "uid": pool.owner.uid,
        "gid": pool.owner.gid,
        "p4_user": pool.owner.perforce_name,
    }


Seen = Mapping[str, Any]
_SEEN = ("state", "ready_at", "seconds_saved")


def default_snapshots_of(pools: Sequence[Pool]) -> dict[int, Snapshot]:
    """Return what members are made from, by pool. A query for each site."""
    at_home = [pool for pool in pools if pool.site_id == pool.template.site_id]
    homes = defaults_among(references_of([pool.template for pool in at_home]))
    found = {p.pk: homes[p.template_id] for p in at_home if p.template_id in homes}
    away: dict[Site, list[Pool]] = {}
    for pool in pools:
        if pool.site_id != pool.template.site_id:
            away.setdefault(pool.site, []).append(pool)
    for site, there in away.items():
        defaults = mirrored_defaults(site, [pool.template for pool in there])
        found |= {
            p.pk: defaults[p.template_id] for p in there if p.template_id in defaults
        }
    return found


def members_seen(pools: Sequence[Pool]) -> dict[int, list[Seen]]:
    """Return what `are_as_wanted` looks at of all members, by pool. One query."""
    fields = ("site", "snapshot", "client_type", "uid", "gid", "p4_user", *_SEEN)
    rows = Workspace.objects.filter(pool__in=pools, is_pooled=True).there().order_by()
    seen: dict[int, list[Seen]] = {pool.pk: [] for pool in pools}
    for row in rows.values("pool", *fields):
        seen[row["pool"]].append(row)
    return seen


def last_asked_at_of(pools: Sequence[Pool]) -> dict[int, dt.datetime]:
    """Return when somebody last requested a workspace of each pool's kind."""
    asked = Workspace.objects.filter(pool__in=pools, is_pooled=False).order_by()
    return dict(asked.values_list("pool").annotate(at=Max("created_at")))


def are_as_wanted(
    members: Sequence[Seen],
    *,
    pool: Pool,
    snapshot: Snapshot,
    client_type: str,
    last_asked_at: dt.datetime | None,
    now: dt.datetime,
) -> bool:
    """Return whether a pool has as many members as it wants, like those made now."""
    like_new = _fields_of_new(pool, snapshot=snapshot, client_type=client_type)
    too_old = youngest_too_old(pool, now=now)

    def is_fresh(member: Seen) -> bool:
        is_ready = member["state"] == W.READY
        return (
            member["state"] in ALIVE
            and all(member[name] == value for name, value in like_new.items())
            and not (is_ready and member["ready_at"] <= too_old)
            and not (is_ready and member["seconds_saved"] is None)
        )

    wanted = wanted_size(pool, last_asked_at=last_asked_at, now=now)
    return len(members) == wanted and all(map(is_fresh, members))


def youngest_too_old(pool: Pool, *, now: dt.datetime) -> dt.datetime:
    """Return the time before which ready members are too old."""
    return now - dt.timedelta(seconds=pool.max_age_seconds)


def ready_members(
    pool: Pool, *, snapshot: Snapshot, client_type: str, now: dt.datetime
) -> QuerySet[Workspace]:
    """Return the members that can be claimed, in the order they became ready."""
    at_work = Operation.objects.filter(
        subject=OuterRef("subject"), state=Operation.State.RUNNING
    )
    fits = as_the_pool_makes_them(pool, snapshot=snapshot, client_type=client_type)
    ready = members_of(pool).filter(
        fits,
        ~Exists(at_work),
        state=W.READY,
        ready_at__gt=youngest_too_old(pool, now=now),
    )
    return ready.order_by("ready_at", "pk")


@dataclass(frozen=True, kw_only=True)
class PoolOverview:
    """A pool with its cost and savings.

    `ready`, `making`, `leaving` and `failed` count members by state; `unique_bytes` is
    what purging all of them would free as last measured, `unmeasured` how many were not
    measured. `warm` and `cold` count the requests since the pool was created, and
    `seconds_saved` is how long provisioning of the claimed ones took.
    """

    pool: Pool
    wanted: int
    ready: int
    making: int
    leaving: int
    failed: int
    unique_bytes: int
    unmeasured: int
    warm: int
    cold: int
    seconds_saved: float
    last_asked_at: dt.datetime | None

    @property
    def members(self) -> int:
        return self.ready + self.making + self.leaving + self.failed


def all_pools() -> QuerySet[Pool]:
    """Return all pools in reading order, with the rows that name them."""
    return Pool.objects.select_related(
        "template__site", "site__perforce_server", "owner"
    ).order_by("template__name", "site__name", "purpose", "owner__username", "pk")


def pools_shown_to(user: User, template: Template) -> list[PoolOverview]:
    """Return the pools of a template by site, for administrators; none for others."""
    if not permissions.can_administer(user):
        return []
    pools = list(all_pools().filter(template=template))
    return overviews_of(pools) if pools else []


def overviews_of(pools: Iterable[Pool]) -> list[PoolOverview]:
    """Return pools with their figures, in one query for all."""
    listed, now = list(pools), timezone.now()
    mine, got = Q(is_pooled=True) & ~Q(state=W.RETIRED), Q(is_pooled=False)
    others = ~Q(state__in=(W.READY, W.PROVISIONING, W.FAILED))
    figures = {
        "ready": Count("pk", filter=mine & Q(state=W.READY)),
        "making": Count("pk", filter=mine & Q(state=W.PROVISIONING)),
        "failed": Count("pk", filter=mine & Q(state=W.FAILED)),
        "leaving": Count("pk", filter=mine & others),
        "unmeasured": Count("pk", filter=mine & Q(unique_bytes__isnull=True)),
        # From here on this name is the sum.
        "unique_bytes": Coalesce(Sum("unique_bytes", filter=mine), 0),
        "warm": Count("pk", filter=got & Q(made_ahead_at__isnull=False)),
        "cold": Count("pk", filter=got & Q(made_ahead_at__isnull=True)),
        "seconds_saved": Coalesce(Sum("seconds_saved", filter=got), 0.0),
    }
    rows = Workspace.objects.filter(pool__in=listed).order_by().values("pool")
    counted = {
        row.pop("pool"): row
        for row in rows.annotate(last_asked_at=Max("created_at", filter=got), **figures)
    }
    none = {**dict.fromkeys(figures, 0), "last_asked_at": None}
    return [
        PoolOverview(
            pool=pool,
            wanted=wanted_size(pool, last_asked_at=row["last_asked_at"], now=now),
            **row,
        )
        for pool in listed
        for row in [counted.get(pool.pk, none)]
    ]
