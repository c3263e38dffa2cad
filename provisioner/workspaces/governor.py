"""Whose turn it is at a Perforce server: one budget for flushes, syncs, comparisons.

A step that needs a turn is queued without a job. It gets one when there is room, and
that job is its turn: it holds it while it is queued or runs. So there is no table of
slots that could disagree with the steps, and the turn of a killed worker is still the
step's when its job is given to another. One that pauses for a retry lets its turn go.

People come before machines, then who asked first; what is made for a warm pool comes
after all who ask. Syncs of templates take hours: the
last turn is never theirs where there are several, and one short step may always run,
however many of them do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce

from provisioner.workspaces.models import Operation, PerforceServer, PerforceUse, Step

NEEDS_A_TURN = (PerforceUse.SHORT, PerforceUse.LONG)


@dataclass(kw_only=True)
class Budget:
    """How many may run on a server, and how many do."""

    limit: int
    short: int = 0
    long: int = 0

    def has_room(self, use: PerforceUse) -> bool:
        is_free = self.short + self.long < self.limit
        if use == PerforceUse.LONG:
            return is_free and self.long < max(1, self.limit - 1)
        return is_free or self.short == 0

    def take(self, use: PerforceUse) -> bool:
        """Count one more; say whether there was room."""
        if not self.has_room(use):
            return False
        self.short += use == PerforceUse.SHORT
        self.long += use == PerforceUse.LONG
        return True


def is_waiting(step: Step) -> bool:
    """Say whether a step waits for its turn: no job is to be expected then."""
    is_queued = step.state == Step.State.QUEUED and step.job_id is None
    return is_queued and step.perforce_use != PerforceUse.NONE


def waiting() -> QuerySet[Step]:
    """Return the steps that wait for their turn, at any server."""
    return Step.objects.filter(
        state=Step.State.QUEUED, job_id=None, perforce_server__isnull=False
    )


def at_work(server_id: int) -> QuerySet[Step]:
    """Return the steps that have their turn."""
    return Step.objects.filter(
        perforce_server=server_id,
        perforce_use__in=NEEDS_A_TURN,
        state__in=(Step.State.QUEUED, Step.State.RUNNING),
        job_id__isnull=False,
    )


def servers_waited_for() -> list[int]:
    """Return the ids of servers where steps wait for their turn."""
    return list(
        waiting().order_by().values_list("perforce_server", flat=True).distinct()
    )


def next_in_turn(server_id: int) -> list[Step]:
    """Return the steps that may start now; give each a job in this transaction.

    The row of the server is locked until it ends: turns are given one by one. Steps
    that somebody else is changing are left to the next look.
    """
    budget = _locked_budget(server_id)
    if not any(budget.has_room(use) for use in NEEDS_A_TURN):
        return []
    return [
        step
        for step in _in_order(_candidates(server_id, at_most=budget.limit))
        if budget.take(PerforceUse(step.perforce_use))
    ]


def may_start(step: Step) -> bool:
    """Say whether a step whose job begins may run; start it in this transaction.

    One that paused for a retry has to take a turn anew.
    """
    if step.perforce_use == PerforceUse.LIGHT or step.state != Step.State.RETRYING:
        return True
    assert step.perforce_server_id is not None
    budget = _locked_budget(step.perforce_server_id)
    return budget.has_room(PerforceUse(step.perforce_use))


def _locked_budget(server_id: int) -> Budget:
    server = PerforceServer.objects.select_for_update(no_key=True).get(pk=server_id)
    counted = at_work(server_id).order_by().values_list("perforce_use")
    running = dict(counted.annotate(count=Count("pk")))
    return Budget(
        limit=server.flush_limit,
        short=running.get(PerforceUse.SHORT, 0),
        long=running.get(PerforceUse.LONG, 0),
    )


def _candidates(server_id: int, *, at_most: int) -> Iterable[Step]:
    """Return the first of each kind that wait: no more could start."""
    for use in NEEDS_A_TURN:
        yield from (
            waiting()
            .filter(
                perforce_server=server_id,
                perforce_use=use,
                operation__state=Operation.State.RUNNING,
            )
            .select_related(
                "operation__workspace__site__perforce_server",
                "operation__template__site__perforce_server",
                "operation__requested_by",
            )
            .order_by(
                Coalesce("operation__workspace__is_pooled", False),
                "operation__requested_by__is_service",
                "operation_id",
                "position",
            )
            .select_for_update(of=("self",), skip_locked=True)[:at_most]
        )


def _in_order(steps: Iterable[Step]) -> list[Step]:
    return sorted(
        steps,
        key=lambda step: (
            step.operation.workspace is not None and step.operation.workspace.is_pooled,
            step.operation.requested_by.is_service,
            step.perforce_use == PerforceUse.LONG,
            step.operation_id,
            step.position,
        ),
    )
