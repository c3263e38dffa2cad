"""Asking for something and breaking something meanwhile, of whatever row."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from typing import Any

from django.db.models import QuerySet

from provisioner.engine.models import Operation, Step
from tests.chaos import faultboard
from tests.chaos.freezing import SLOW, Place
from tests.chaos.judge import IN_FLIGHT, Fault
from tests.chaos.patience import from_database, insist
from tests.chaos.people import Answer, Person
from tests.chaos.trial import (
    FREEZE,
    MOMENT_WITHIN_SECONDS,
    SETTLED_WITHIN_SECONDS,
    WEIGHTS,
    Stuck,
    World,
)
from tests.chaos.witness import OntapWitness

LINK = "link"
VICTIMS = {
    **{name: weight for name, weight in WEIGHTS.items() if name != "perforce"},
    LINK: 6,
}
FAULTS = [kind for kind in faultboard.KINDS if kind.startswith("ontap")]
POLL_EVERY_SECONDS = 0.1


class Link:
    """The network between the clusters, as SnapMirror feels it."""

    def __init__(self, clusters: Sequence[OntapWitness]) -> None:
        self._clusters = clusters
        self._cut = 0
        self._lock = threading.Lock()

    def be_slow(self, *, seconds: float) -> None:
        """Have transfers, splits and moves last so long, until a cluster restarts."""
        self._set(transfer_seconds=seconds, split_seconds=seconds, move_seconds=seconds)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Cut it; with several who cut it, until the last one mends it."""
        with self._lock:
            self._cut += 1
            self._set(svm_peering=False)
        try:
            yield
        finally:
            with self._lock:
                self._cut -= 1
                self._set(svm_peering=not self._cut)

    def _set(self, **settings: Any) -> None:
        for cluster in self._clusters:
            insist(
                partial(cluster.request, "PATCH", "/lab/settings", settings),
                on=(OSError, HTTPException),
            )


class Disturbed:
    """Requests about one row, each with its trouble; a trial says which row.

    `key` keeps its faults apart from those of others. `busy` are the refusals after
    which it asks again. `steps` are those of each kind of operation.
    """

    busy: tuple[str, ...] = ()
    steps: Mapping[str, list[Place]]

    def __init__(self, world: World, *, link: Link, key: int) -> None:
        self.world = world
        self.link = link
        self.key = key
        self.admin = world.admin
        self.rng = random.Random(key)
        self.history: list[str] = []
        self.faults: list[Fault] = []

    # --- what a trial says of its row

    def _operations(self) -> QuerySet[Operation]:
        """Return the operations on it."""
        raise NotImplementedError

    def _is_at_rest(self) -> bool:
        """Return whether its state is not that of something under way."""
        raise NotImplementedError

    def _state(self) -> str:
        """Return its state with its reason, as it was read last."""
        raise NotImplementedError

    def _look(self) -> list[Fault]:
        """Return what is wrong with it, now that it stands still."""
        raise NotImplementedError

    # --- one request and its trouble

    def _disturb(
        self,
        kind: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        by: Person | None = None,
        interruption: tuple[str, str] | None = None,
    ) -> Answer:
        """Ask for something, break something meanwhile, wait, judge.

        An `interruption` is a method and a path that are asked for meanwhile, too.
        """
        rng, board = self.rng, self.world.board
        before = self._last_operation_id()
        trouble = rng.choice(("kill", "kill", "fault", "both", "none"))
        has_fault, has_kill = trouble in ("fault", "both"), trouble in ("kill", "both")
        fault_kind = rng.choice(FAULTS)
        fault = faultboard.draw(fault_kind, rng)
        victim = rng.choices([*VICTIMS], [*VICTIMS.values()])[0]
        place, is_done = rng.choice(self.steps[kind]), rng.random() < 0.5
        down_seconds = rng.choice((0.0, 0.3, 1.5))
        if has_kill and victim == FREEZE:
            place, is_done = self.world.freezer.next_of(self.steps[kind]), False
            fault, fault_kind, has_fault = SLOW, "slow", True
        self.link.be_slow(seconds=rng.choice((0.0, 0.5, 1.5)))
        self.history.append(kind)
        if has_fault:
            self.history.append(f"({fault_kind})")
            board.put(self.key, fault)
        answer = self._ask(method, path, body, by=by)
        steps = self._steps(place, later_than=before)
        when = f"{'after' if is_done else 'in'} {place[1]}"
        if has_kill or interruption:
            self._wait_for(steps, is_done=is_done)
        if interruption is not None:
            self.history.append(f"({' '.join(interruption)} {when})")
            self._ask(*interruption, by=by)
        if has_kill:
            self.history.append(f"({victim} {when}, {down_seconds} s)")
            self._kill(victim, place, steps, down_seconds=down_seconds)
        self._settle()
        board.end(self.key)
        self._judge(kind)
        return answer

    def _kill(
        self, victim: str, place: Place, steps: QuerySet[Step], *, down_seconds: float
    ) -> None:
        if victim == LINK:
            with self.link.cut():
                time.sleep(max(down_seconds, 0.5))
        elif victim == FREEZE:
            self.world.freezer.freeze_in(steps, place=place)
        else:
            self.world.servers.kill(victim, down_seconds=down_seconds)

    def _ask(
        self, method: str, path: str, body: Any = None, *, by: Person | None = None
    ) -> Answer:
        """Ask again while something else is under way.

        Raises: Stuck.
        """
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while True:
            answer = (by or self.admin).ask(method, path, body)
            if answer.status not in (200, 202, 204, 404, 409):
                raise Stuck(f"{method} {path}: {answer.status} {answer.body}")
            if answer.status != 409 or answer.body["code"] not in self.busy:
                self._heard(path)
                return answer
            self.world.outcomes[f"refused: {answer.body['code']}"] += 1
            if time.monotonic() > ends:
                raise Stuck(f"{method} {path}: {answer.body['detail']}")
            time.sleep(POLL_EVERY_SECONDS)

    def _heard(self, path: str) -> None:
        """Take notice of an answer."""

    def _blame(self, *faults: Fault) -> None:
        said = "; ".join(self.history)
        self.faults += [
            Fault(kind=fault.kind, what=f"{fault.what} [{said}]") for fault in faults
        ]

    # --- waiting

    def _last_operation_id(self) -> int:
        newest = self._operations().order_by("-pk").values_list("pk", flat=True)
        return from_database(newest.first) or 0

    def _steps(self, place: Place, *, later_than: int) -> QuerySet[Step]:
        kind, name = place
        operations = self._operations().filter(pk__gt=later_than, kind=kind)
        return Step.objects.filter(operation__in=operations.values("pk"), name=name)

    def _wait_for(self, steps: QuerySet[Step], *, is_done: bool) -> None:
        """Wait until one of the steps begins or has ended, or the row rests."""
        come = steps.exclude(ended_at=None) if is_done else steps.filter(attempt__gt=0)
        ends = time.monotonic() + MOMENT_WITHIN_SECONDS
        while time.monotonic() < ends and not from_database(come.all().exists):
            if not self._is_moving():
                return
            time.sleep(POLL_EVERY_SECONDS / 2)

    def _is_moving(self) -> bool:
        in_flight = Step.objects.filter(
            operation__in=self._operations().values("pk"), state__in=IN_FLIGHT
        )
        return not self._is_at_rest() or from_database(in_flight.exists)

    def _settle(self) -> None:
        """Raises: Stuck where something moves for too long."""
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while self._is_moving():
            if time.monotonic() > ends:
                raise Stuck(f"{self._state()} for long")
            time.sleep(POLL_EVERY_SECONDS)

    def _judge(self, after: str) -> None:
        self._is_at_rest()  # reads the row
        state = self._state()
        self.world.outcomes[f"{after}: {state}"] += 1
        self.history.append(f"-> {state}")
        with self.world.servers.calm.at_work():
            self._blame(*self._look())
