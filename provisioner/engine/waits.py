"""Waits of steps for slots at Perforce servers, present and expected."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet, Subquery

from provisioner.engine import loads, slots
from provisioner.engine.models import PerforceUse, SlotBudget, Step
from provisioner.engine.subjects import Server
from provisioner.lib import clocks


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A step's wait for a slot: its place in the queue, or the pause.

    `since` is when the first in the queue began to wait, if requested. `maintenance`
    and `others` say as sentences why few or none may run; "" if that is not why.
    """

    server: str
    before: int
    paused_reason: str
    since: dt.datetime | None = None
    maintenance: str = ""
    others: str = ""

    @property
    def is_paused(self) -> bool:
        return bool(self.paused_reason)

    @property
    def sentence(self) -> str:
        if self.is_paused:
            return (
                f"The Perforce server {self.server} is paused: {self.paused_reason} "
                "It continues once an administrator resumes the server."
            )
        if self.maintenance:
            return f"{self.maintenance} It continues after that."
        return f"{self._place} {self.others}".rstrip()

    @property
    def _place(self) -> str:
        if not self.before:
            return (
                f"It is next in line for a slot at the Perforce server {self.server}."
            )
        are = "one is" if self.before == 1 else f"{self.before:,} are"
        return (
            f"Waits for a slot at the Perforce server {self.server}: {are} before it."
        )


def wait_of(step: Step) -> Wait | None:
    """Return why a step has not started; None if it does not wait for a slot."""
    if not slots.is_waiting(step):
        return None
    assert step.perforce_server is not None
    pause = SlotBudget.objects.filter(
        server=step.perforce_server, paused_at__isnull=False
    ).first()
    needs_slot = step.perforce_use in slots.NEEDS_SLOT
    now, server = clocks.database_now(), step.perforce_server
    return Wait(
        server=server.name,
        maintenance=loads.maintenance_of(server, now=now) if needs_slot else "",
        others=loads.others_wait_at(server, now=now) if needs_slot else "",
        before=_before(step).count() if needs_slot and pause is None else 0,
        paused_reason=_as_sentence(pause.paused_reason) if pause else "",
    )


def waits_of_new(servers: Collection[Server]) -> dict[int, Wait]:
    """Return how long a short step would wait if a person requested one now.

    By the id of its server; servers where it could start at once are left out. The
    servers have their `slot_budget` and `load` loaded. Two queries, and another if a
    server is busy.
    """
    now = clocks.database_now()
    counts = slots.counts_at([server.pk for server in servers])
    waits, busy = dict[int, Wait](), list[Server]()
    for server in servers:
        slot_budget = getattr(server, "slot_budget", None)
        if slot_budget is not None and slot_budget.paused_at is not None:
            reason = _as_sentence(slot_budget.paused_reason)
            waits[server.pk] = Wait(server=server.name, before=0, paused_reason=reason)
        elif not slots.budget_of(
            server, slot_budget, counts[server.pk], now=now
        ).has_room(PerforceUse.SHORT):
            busy.append(server)
    before = _people_before(busy) if busy else {}
    for server in busy:
        number, since = before.get(server.pk, (0, None))
        waits[server.pk] = Wait(
            server=server.name,
            before=number,
            paused_reason="",
            since=since,
            maintenance=loads.maintenance_of(server, now=now),
            others=loads.others_wait_at(server, now=now),
        )
    return waits


def _people_before(servers: Collection[Server]) -> dict[int, tuple[int, dt.datetime]]:
    """Return how many short steps of people wait at each server, and since when."""
    waiting_for_short = slots.waiting().filter(
        perforce_server__in=[server.pk for server in servers],
        perforce_use=PerforceUse.SHORT,
    )
    rows = (
        waiting_for_short.annotate(rank=slots.RANK)
        .filter(rank=0)
        .order_by()
        .values_list("perforce_server")
        .annotate(number=Count("pk"), since=Min("queued_at"))
    )
    return {server_id: (number, since) for server_id, number, since in rows}


def _as_sentence(reason: str) -> str:
    return reason if reason[-1:] in ".!?" else f"{reason}."


def _before(step: Step) -> QuerySet[Step]:
    """Return the steps ahead of a step in the same server's queue."""
    earlier = Q(perforce_use=step.perforce_use, operation__lt=step.operation_id)
    if step.perforce_use == PerforceUse.LONG:
        earlier |= Q(perforce_use=PerforceUse.SHORT)
    # What is long holds up nothing that is short.
    is_long = step.perforce_use == PerforceUse.LONG
    holds_up = Q(perforce_use__in=slots.NEEDS_SLOT if is_long else slots.NEEDS_SLOT[:1])
    rank = Subquery(
        Step.objects.filter(pk=step.pk).annotate(rank=slots.RANK).values("rank")
    )
    return (
        slots.waiting()
        .filter(perforce_server=step.perforce_server_id)
        .annotate(rank=slots.RANK)
        .filter((Q(rank__lt=rank) & holds_up) | (Q(rank=rank) & earlier))
    )
