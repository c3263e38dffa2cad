"""Slots at Perforce servers: one budget for flushes, syncs and comparisons.

A step that needs a slot is queued without a job. When there is room it gets a job, and
that job is its slot while the step is queued or runs. So no table of slots can disagree
with the steps, and a step whose worker was killed keeps its slot. A step that pauses
for a retry gives it up.

People come before machines, then earlier requests first; warm pools come last. Syncs of
templates take hours: they never get the last of several slots, and one short step may
always run beside them.

When one of our commands waited long for a lock of the server, or others wait there,
fewer run for a while. In maintenance nothing gets a slot. At a paused server nothing
that uses it starts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

import structlog
from django.apps import apps
from django.db import transaction
from django.db.models import Case, Count, Q, QuerySet, Value, When

from provisioner.engine import loads
from provisioner.engine.models import LockWait, Operation, PerforceUse, SlotBudget, Step
from provisioner.engine.subjects import Server
from provisioner.gateways.perforce.types import LockUse
from provisioner.lib import clocks
from provisioner.lib.prepared import Prepared, planned_cursor
from provisioner.lib.shares import grown, halved

log = structlog.get_logger(__name__)

# What a lock waited for: shorter is not told, as long as this is taken for a jam.
WORTH_TELLING_MS = 20
LONG_WAIT_MS = 500
# Waits that end so shortly after each other were for the same jam.
SAME_JAM_SECONDS = 10.0
ONE_MORE_AFTER_SECONDS = 60.0
WAITS_KEPT = 100

NEEDS_SLOT = (PerforceUse.SHORT, PerforceUse.LONG)

# A step waits for a slot as long as it is queued and has no job.
_WAITS: dict[str, Any] = {"state": Step.State.QUEUED, "job_id": None}
WAITS = Q(**_WAITS)
HAS_SLOT = Q(
    perforce_use__in=NEEDS_SLOT,
    state__in=(Step.State.QUEUED, Step.State.RUNNING),
    job_id__isnull=False,
)


@dataclass(kw_only=True)
class Budget:
    """The slots of a server, and how many are in use."""

    limit: int
    short: int = 0
    long: int = 0

    def has_room(self, use: PerforceUse) -> bool:
        if use == PerforceUse.LIGHT:
            return True
        if not self.limit:
            return False
        is_free = self.short + self.long < self.limit
        if use == PerforceUse.LONG:
            return is_free and self.long < max(1, self.limit - 1)
        return is_free or self.short == 0

    def take(self, use: PerforceUse) -> bool:
        """Take a slot; return whether one was free."""
        if not self.has_room(use):
            return False
        self.short += use == PerforceUse.SHORT
        self.long += use == PerforceUse.LONG
        return True


def is_waiting(step: Step) -> bool:
    """Return whether a step waits for a slot."""
    return all(getattr(step, field) == value for field, value in _WAITS.items())


def observe(step: Step, use: LockUse) -> None:
    """Record how long a command waited for a lock, and back off if that was long.

    Backing off halves the slots; present_limit says how they come back.
    """
    if use.waited_ms < WORTH_TELLING_MS:
        return
    server_id, now = step.perforce_server_id, clocks.database_now()
    if server_id is None:
        return
    with transaction.atomic():
        server = _locked_server(server_id)
        LockWait.objects.create(
            server_id=server.pk,
            at=now,
            operation_id=step.operation_id,
            command=use.command,
            table=use.table[:100],
            waited_ms=use.waited_ms,
            held_ms=use.held_ms,
        )
        kept = LockWait.objects.filter(server=server.pk).order_by("-at", "-pk")
        LockWait.objects.filter(
            pk__in=list(kept.values_list("pk", flat=True)[WAITS_KEPT:])
        ).delete()
        if use.waited_ms >= LONG_WAIT_MS:
            _back_off(server, now=now)


def observe_others(server_id: int, load: loads.Load) -> None:
    """Record what others do at a server, and back off if they wait."""
    with transaction.atomic():
        server, now = _locked_server(server_id), clocks.database_now()
        loads.record_load(server.pk, load, now=now)
        if load.others_wait:
            _back_off(server, now=now)


def _back_off(server: Server, *, now: dt.datetime) -> None:
    """Halve the number of slots, once for all waits for the same lock."""
    known = SlotBudget.objects.filter(server=server.pk).first()
    since = known.backed_off_at if known else None
    present = _backed_off_limit(server, known, now=now)
    lately = since is not None and (now - since).total_seconds() < SAME_JAM_SECONDS
    SlotBudget.objects.update_or_create(
        server_id=server.pk,
        defaults={
            "backed_off_to": present if lately else halved(present),
            "backed_off_at": now,
        },
    )
    log.warning("perforce_backed_off", server=server.name, limit=present)


def present_limit(server: Server, known: SlotBudget | None, *, now: dt.datetime) -> int:
    """Return how many steps may run now.

    In maintenance none may. After a long wait for a lock they are fewer, then one more
    each minute.
    """
    if loads.maintenance_of(server, now=now):
        return 0
    return _backed_off_limit(server, known, now=now)


def _backed_off_limit(
    server: Server, known: SlotBudget | None, *, now: dt.datetime
) -> int:
    if known is None or known.backed_off_to is None or known.backed_off_at is None:
        return server.flush_limit
    minutes = (now - known.backed_off_at).total_seconds() // ONE_MORE_AFTER_SECONDS
    return grown(known.backed_off_to, by=int(minutes), most=server.flush_limit)


_IS_PAUSED = """
    SELECT EXISTS (SELECT 1 FROM engine_slotbudget
        WHERE server_id = %s AND paused_at IS NOT NULL), clock_timestamp()
"""


def is_paused(server_id: int) -> bool:
    """Return whether the server is paused. `clocks.one_moment` may begin with that."""
    with planned_cursor() as cursor:
        cursor.execute(_IS_PAUSED, [server_id])
        paused, now = cursor.fetchone()
    clocks.noted(now)
    return bool(paused)


def waiting() -> QuerySet[Step]:
    """Return the steps that wait for a slot, at any server."""
    return Step.objects.filter(WAITS)


def at_work() -> QuerySet[Step]:
    """Return the steps that have a slot, at any server."""
    return Step.objects.filter(HAS_SLOT)


def servers_in_use() -> list[int]:
    """Return the ids of servers where steps have slots or wait for them."""
    using = Step.objects.filter(HAS_SLOT | WAITS).order_by()
    return list(using.values_list("perforce_server", flat=True).distinct())


def servers_waited_for() -> list[int]:
    """Return the ids of servers where steps wait for a slot."""
    return list(
        waiting().order_by().values_list("perforce_server", flat=True).distinct()
    )


def next_in_line(server_id: int) -> list[Step]:
    """Return the waiting steps that get a free slot now, in order.

    None while the server is paused. The caller queues a job for each in the same
    transaction: the server's row is locked until its end, so that no slot is given
    twice. Steps that others have locked are left to the next check. The rows of their
    subjects are not loaded.
    """
    _lock(server_id)
    counts = _counts(server_id)
    waited_for = [use for use, (_, waiting) in counts.items() if waiting]
    if not waited_for:
        return []
    budget = _free_at(server_id, counts)
    if budget is None:
        return []
    return [
        step
        for step in sorted(
            _candidates(server_id, waited_for, budget), key=attrgetter(*_ORDER)
        )
        if budget.take(PerforceUse(step.perforce_use))
    ]


class Room(Enum):
    """What a step finds that asks for a slot: one, others before it, or none."""

    FREE = "free"
    LINE = "line"
    FULL = "full"


def room_for(step: Step) -> Room:
    """Return whether there is a slot for a step, and nobody waits for one.

    The server's row stays locked until the end of the transaction, in which the caller
    starts the step, or queues it.
    """
    assert step.perforce_server_id is not None
    _lock(step.perforce_server_id)
    counts = _counts(step.perforce_server_id)
    budget = _free_at(step.perforce_server_id, counts)
    if budget is None or not budget.has_room(PerforceUse(step.perforce_use)):
        return Room.FULL
    return Room.LINE if any(waiting for _, waiting in counts.values()) else Room.FREE


def _free_at(server_id: int, counts: Counts) -> Budget | None:
    """Return the budget of a locked server; None while it is paused."""
    server = loads.server_with_load(server_id)
    known = getattr(server, "slot_budget", None)
    if known is not None and known.paused_at is not None:
        return None
    return budget_of(server, known, counts, now=clocks.database_now())


def may_start(step: Step) -> bool:
    """Return whether a step may start, now that its job runs.

    At a paused server it may not, nor in maintenance if it needs a slot. Otherwise its
    job is its slot, unless it gave that up to pause for a retry: then it may start if a
    slot is free. In that case the server's row stays locked until the end of the
    transaction, in which the caller starts the step.
    """
    assert step.perforce_server_id is not None
    if is_paused(step.perforce_server_id):
        return False
    if step.perforce_use == PerforceUse.LIGHT:
        return True
    if step.state != Step.State.RETRYING:
        return not loads.why_stop(step.perforce_server_id)
    server = _locked_server(step.perforce_server_id)
    known = SlotBudget.objects.filter(server=server.pk).first()
    now = clocks.database_now()
    budget = budget_of(server, known, _counts(server.pk), now=now)
    return budget.has_room(PerforceUse(step.perforce_use))


# Of each use how many steps have a slot, and how many wait for it.
Counts = dict[str, tuple[int, int]]
_COUNTED = (
    Step.objects.filter(state__in=(Step.State.QUEUED, Step.State.RUNNING))
    .order_by()
    .values_list("perforce_use")
    .annotate(at_work=Count("pk", filter=HAS_SLOT))
    .annotate(waiting=Count("pk", filter=WAITS))
)
_COUNTED_AT_ONE: Prepared[tuple[str, int, int]] = Prepared(
    lambda server_id: _COUNTED.filter(perforce_server=server_id), keeps_plan=True
)


def _counts(server_id: int) -> Counts:
    counted = _COUNTED_AT_ONE.rows(server_id)
    return {use: (at_work, waiting) for use, at_work, waiting in counted}


def counts_at(server_ids: Collection[int]) -> dict[int, Counts]:
    """Return the counts of slots at several servers. One query."""
    counts: dict[int, Counts] = {server_id: {} for server_id in server_ids}
    of_each = ("perforce_server", "perforce_use", "at_work", "waiting")
    at_these = _COUNTED.filter(perforce_server__in=server_ids).values_list(*of_each)
    for server_id, use, at_work, waiting in at_these:
        counts[server_id][use] = (at_work, waiting)
    return counts


def budget_of(
    server: Server, known: SlotBudget | None, counts: Counts, *, now: dt.datetime
) -> Budget:
    return Budget(
        limit=present_limit(server, known, now=now),
        short=counts.get(PerforceUse.SHORT, (0, 0))[0],
        long=counts.get(PerforceUse.LONG, (0, 0))[0],
    )


def _servers() -> QuerySet[Any]:
    """Return the rows of servers; their model is in a feature above."""
    servers: QuerySet[Any] = apps.get_model("sites", "PerforceServer").objects.all()
    return servers


def _lock(server_id: int) -> None:
    """Lock a server's row. What is read afterwards is as others left it."""
    table = apps.get_model("sites", "PerforceServer")._meta.db_table
    with planned_cursor() as cursor:
        cursor.execute(
            f"SELECT 1 FROM {table} WHERE id = %s FOR NO KEY UPDATE",  # noqa: S608
            [server_id],
        )


def _locked_server(server_id: int) -> Server:
    locked = _servers().select_for_update(no_key=True, of=("self",))
    server: Server = locked.select_related("load").get(pk=server_id)
    return server


def _candidates(
    server_id: int, uses: Collection[str], budget: Budget
) -> Iterable[Step]:
    """Return the first waiting steps of each kind, as many as could start."""
    for use in (PerforceUse.LIGHT, *NEEDS_SLOT):
        if use not in uses or not budget.has_room(use):
            continue
        yield from (
            in_order(waiting())
            .filter(
                perforce_server=server_id,
                perforce_use=use,
                operation__state=Operation.State.RUNNING,
            )
            .select_related("operation__requested_by", "operation__subject")
            .select_for_update(of=("self",), skip_locked=True)[
                : None if use == PerforceUse.LIGHT else budget.limit
            ]
        )


# People first, then machines, then the background; of each what is short, then who
# asked first.
RANK = Case(
    When(operation__is_background=True, then=Value(2)),
    When(operation__requested_by__is_service=True, then=Value(1)),
    default=Value(0),
)
_IS_LONG = Case(When(perforce_use=PerforceUse.LONG, then=Value(1)), default=Value(0))
_ORDER = ("rank", "is_long", "operation_id", "position")


def in_order(steps: QuerySet[Step]) -> QuerySet[Step]:
    """Return steps in the order in which they get slots, with their sort keys."""
    return steps.annotate(rank=RANK, is_long=_IS_LONG).order_by(*_ORDER)
