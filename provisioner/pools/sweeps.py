"""Keep warm pools at their size, a few members every fifteen seconds.

Members that differ from one made now are retired: those of another snapshot or a
changed account, the too old, the failed, and the excess. People come first: no member
is started while a step of theirs waits for a worker, jobs of members come last, and the
last fifth of every limit is left free. A pool whose members fail pauses, longer each
time. A pool follows its template from a lost home, and ends where a mirror was deleted.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from functools import cache

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation, Step
from provisioner.engine.starting import start_operation
from provisioner.leases.sweeps.leases import may_try_again
from provisioner.lib import clocks
from provisioner.lib.limits import LimitReached
from provisioner.lib.refusals import ActionRefused
from provisioner.limits.admission import check_pooling
from provisioner.mirrors.models import FORMER_HOMES, Mirror
from provisioner.mirrors.queries import default_at
from provisioner.pools import queries
from provisioner.pools.models import Pool
from provisioner.sites.models import Site
from provisioner.workspaces.actions.making import insert_workspace, lock_snapshot
from provisioner.workspaces.actions.retiring import locked, workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace, WorkspaceOperation
from provisioner.workspaces.purposes import client_type_for
from provisioner.workspaces.queries import last_operation, seconds_it_took

log = structlog.get_logger(__name__)

AT_ONCE = 5
MOST_FAILED = 3
FIRST_PAUSE = dt.timedelta(minutes=1)
LONGEST_PAUSE = dt.timedelta(hours=1)

W = Workspace.State
LEAVING = (WorkspaceOperation.RETIRE, WorkspaceOperation.PURGE)


@app.periodic(cron="* * * * * */15")
@app.task(name="sweep_pools", queue="sweeps", queueing_lock="sweep_pools")
def sweep_pools(timestamp: int) -> None:
    """Fill or shrink each pool, and retire members of deleted ones."""
    now = clocks.database_now()
    pools = [pool for pool in queries.all_pools() if _follow_home(pool)]
    for pool in _not_as_wanted(pools, now=now):
        _tend(pool, now=now)
    strays = Workspace.objects.filter(is_pooled=True, pool__isnull=True)
    there = strays.filter(state__in=(*queries.ALIVE, W.FAILED)).order_by("pk")
    why, retired = "Its pool was deleted, or is at another site.", 0
    for member in there:
        # Those at a lost site cannot be retired, and are not in the way of others.
        retired += _retire(member, why=why, now=now)
        if retired == AT_ONCE:
            break


def _not_as_wanted(pools: Sequence[Pool], *, now: dt.datetime) -> list[Pool]:
    """Return the pools that have to be tended, by a few queries for all of them."""
    snapshots = queries.default_snapshots_of(pools)
    members = queries.members_seen(pools)
    asked_at = queries.last_asked_at_of(pools)
    known_type = cache(client_type_for)

    def is_as_wanted(pool: Pool) -> bool:
        snapshot, client_type, obstacle = _what_to_make(
            pool, default=snapshots.get(pool.pk), type_for=known_type
        )
        if pool.failures or pool.status_message != obstacle:
            return False
        if snapshot is None:
            return not members[pool.pk]
        return queries.are_as_wanted(
            members[pool.pk],
            pool=pool,
            snapshot=snapshot,
            client_type=client_type,
            last_asked_at=asked_at.get(pool.pk),
            now=now,
        )

    return [pool for pool in pools if not is_as_wanted(pool)]


def _follow_home(pool: Pool) -> bool:
    """Move a pool from a former home to the new one; delete it without a mirror.

    Return whether the pool exists.
    """
    template, site = pool.template, pool.site
    if site == template.site:
        return True
    mirror = Mirror.objects.filter(template=template, site=site).first()
    if mirror is not None and mirror.state not in FORMER_HOMES:
        return True
    with transaction.atomic():
        row = Pool.objects.select_for_update().filter(pk=pool.pk, site=site).first()
        if row is None:
            return False
        if mirror is None:
            _end(pool, f"{template.name} has no mirror at {site.name} any more.")
            return False
        home = template.site
        of_its_kind = Pool.objects.filter(purpose=pool.purpose, owner=pool.owner)
        if of_its_kind.filter(template=template, site=home).exists():
            _end(pool, f"The home is {home.name} now, which has such a pool.")
            return False
        _move(pool, to=home)
    return True


def _end(pool: Pool, why: str) -> None:
    record_event(pool, kind="pool_ended", message=why, actor=system_user())
    pool.delete()


def _move(pool: Pool, *, to: Site) -> None:
    """Move a pool to another site; the members that are left behind are retired."""
    queries.members_of(pool).update(pool=None)
    record_event(
        pool,
        kind="pool_moved",
        message=f"It is at {to.name} now, the new home of {pool.template.name}.",
        actor=system_user(),
        data={"site": {"from": pool.site.name, "to": to.name}},
    )
    pool.site = to
    Pool.objects.filter(pk=pool.pk).update(site=to)


def _tend(pool: Pool, *, now: dt.datetime) -> None:
    """Retire unfit members, then start missing ones."""
    snapshot, client_type, obstacle = _what_to_make(
        pool, default=default_at(pool.template, pool.site), type_for=client_type_for
    )
    wanted = 0
    if snapshot is not None:
        asked_at = queries.last_asked_at(pool)
        wanted = queries.wanted_size(pool, last_asked_at=asked_at, now=now)
    _remove_failed(pool, now=now)
    there = queries.members_of(pool).filter(state__in=queries.ALIVE)
    fitting = there.none()
    if snapshot is not None:
        fitting = there.filter(
            queries.as_the_pool_makes_them(
                pool, snapshot=snapshot, client_type=client_type
            )
        )
    old = Q(state=W.READY, ready_at__lte=queries.youngest_too_old(pool, now=now))
    for member in there.exclude(pk__in=fitting.values("pk"))[:AT_ONCE]:
        _retire(member, why="It no longer matches its pool.", now=now)
    for member in fitting.filter(old)[:AT_ONCE]:
        _retire(member, why="It is too old for its pool.", now=now)
    fresh = fitting.exclude(old)
    for member in fresh.filter(state=W.READY, seconds_saved__isnull=True):
        # Ahead of the claim, which has to be short; one claimed meanwhile has its own.
        Workspace.objects.filter(pk=member.pk, seconds_saved__isnull=True).update(
            seconds_saved=seconds_it_took(member)
        )
    too_many = max(0, fresh.count() - wanted)
    for member in fresh[: min(too_many, AT_ONCE)]:
        _retire(member, why="Its pool has become smaller.", now=now)
    if snapshot is not None:
        obstacle = _fill(
            pool,
            snapshot=snapshot,
            client_type=client_type,
            fresh=fresh,
            wanted=wanted,
            now=now,
        )
    _note(pool, obstacle)


def _what_to_make(
    pool: Pool, *, default: Snapshot | None, type_for: Callable[..., str]
) -> tuple[Snapshot | None, str, str]:
    """Return the snapshot and client type of new members.

    Without a snapshot the text says why not: None, "" and the reason.
    """
    if pool.template.is_archived:
        return None, "", "The template is archived."
    site, owner, snapshot = pool.site, pool.owner, default
    if snapshot is None:
        return None, "", f"The template has no default snapshot at {site.name}."
    if not owner.is_active or owner.uid is None or owner.gid is None:
        return None, "", "Its account is not active, or has no uid and gid."
    try:
        return snapshot, type_for(pool.purpose, site=site, owner=owner), ""
    except ActionRefused as refusal:
        return None, "", refusal.sentence


def _remove_failed(pool: Pool, *, now: dt.datetime) -> None:
    """Retire members that failed, and pause the pool."""
    has_failed = False
    for member in queries.members_of(pool).filter(state=W.FAILED)[:MOST_FAILED]:
        last, why = last_operation(member), member.status_message
        if not _retire(member, why="It could not be created.", now=now):
            continue
        if last is not None and last.kind in LEAVING:
            continue  # it was noted when it could not be made
        has_failed = True
        log.warning("pool_member_failed", pool=pool.pk, workspace_id=member.pk, why=why)
    if has_failed:
        pause = min(FIRST_PAUSE * 2 ** min(pool.failures, 10), LONGEST_PAUSE)
        pool.failures, pool.failed_at = pool.failures + 1, now
        pool.retry_at = now + pause
        Pool.objects.filter(pk=pool.pk).update(
            failures=pool.failures, failed_at=now, retry_at=pool.retry_at
        )
    if pool.failed_at is None or not pool.failures:
        return
    since = queries.members_of(pool).filter(state=W.READY, ready_at__gt=pool.failed_at)
    if since.exists():
        pool.failures = 0
        Pool.objects.filter(pk=pool.pk).update(failures=0, retry_at=None)


def _retire(member: Workspace, *, why: str, now: dt.datetime) -> bool:
    """Retire and purge a member unless it was claimed; return whether it was."""
    with transaction.atomic():
        member = locked(member)
        if not member.is_pooled or member.state not in (*queries.ALIVE, W.FAILED):
            return False
        last = last_operation(member)
        if last is not None and not _may_leave(member, last, now):
            return False
        try:
            workspace_retire(
                by=system_user(),
                workspace=member,
                unsubmitted=Unsubmitted.RESCUE,
                purge=True,
                reason=why,
            )
        except ActionRefused as refusal:
            log.warning(
                "member_not_retired", workspace_id=member.pk, reason=refusal.sentence
            )
            return False
    return True


def _may_leave(member: Workspace, last: Operation, now: dt.datetime) -> bool:
    """Return whether it may be retired, or retried after a failure.

    A failed purge is retried with the trash.
    """
    if last.kind not in LEAVING:
        return True
    return last.kind == WorkspaceOperation.RETIRE and may_try_again(
        member, WorkspaceOperation.RETIRE, since=member.created_at, now=now
    )


def _fill(
    pool: Pool,
    *,
    snapshot: Snapshot,
    client_type: str,
    fresh: QuerySet[Workspace],
    wanted: int,
    now: dt.datetime,
) -> str:
    """Start missing members, a few at a time; return what prevents more."""
    members = queries.members_of(pool)
    if fresh.count() >= wanted:
        return ""
    if members.filter(state=W.FAILED).count() >= MOST_FAILED:
        return "Members that failed could not be removed yet."
    if pool.retry_at is not None and pool.retry_at > now:
        return "Members could not be created. Retrying after a pause."
    if _others_wait(pool.site):
        return "Requests are waiting for a worker, so the pool is filled after them."
    with transaction.atomic():
        # Two sweeps at a time would both make what is missing.
        tended = Pool.objects.select_for_update(no_key=True, skip_locked=True)
        if tended.filter(pk=pool.pk).first() is None:
            return ""
        room = min(
            wanted - fresh.count(),
            AT_ONCE - fresh.filter(state=W.PROVISIONING).count(),
            2 * wanted - members.count(),
        )
        for _ in range(room):
            try:
                with transaction.atomic():
                    _make(pool, snapshot=snapshot, client_type=client_type)
            except LimitReached as refusal:
                return (
                    "The last fifth of each limit is reserved for requests. "
                    f"{refusal.sentence}"
                )
            except ActionRefused as refusal:
                return refusal.sentence
    return ""


def _others_wait(site: Site) -> bool:
    """Return whether a step for somebody else than a pool waits for a site's worker."""
    theirs = Q(
        operation__subject__workspace__site=site,
        operation__subject__workspace__is_pooled=False,
    )
    builds = Q(operation__subject__template__site=site)
    waiting = Step.objects.filter(state=Step.State.QUEUED)
    return waiting.filter(theirs | builds).exists()


def _make(pool: Pool, *, snapshot: Snapshot, client_type: str) -> None:
    """Create the row of a member and queue its steps.

    Raises: LimitReached, SnapshotGone, SnapshotWithdrawn, SnapshotNotAtSite.
    """
    template, site, owner, tag = pool.template, pool.site, pool.owner, uuid.uuid4()
    lock_snapshot(snapshot, site=site)
    check_pooling(template=template, snapshot=snapshot, site=site, purpose=pool.purpose)
    name = f"pool-{tag.hex[:12]}"
    member = insert_workspace(
        owner=owner,
        template=template,
        snapshot=snapshot,
        site=site,
        name=name,
        remote_name=name,
        tag=tag,
        pool=pool,
        is_pooled=True,
        purpose=pool.purpose,
        client_type=client_type,
    )
    record_event(
        member,
        kind="workspace_pooled",
        message=f"Created for the warm pool of {owner.username}: a clone of "
        f"{template.name} at change {snapshot.change}.",
        actor=system_user(),
        data={"pool": pool.pk},
    )
    start_operation(
        WorkspaceOperation.PROVISION,
        by=system_user(),
        about=member,
        is_background=True,
    )


def _note(pool: Pool, obstacle: str) -> None:
    if pool.status_message != obstacle:
        Pool.objects.filter(pk=pool.pk).update(status_message=obstacle)
