"""A mirror and a clone at its site, while everything breaks and the link is cut."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

from django.db.models import QuerySet

from provisioner.engine.models import Operation, Step
from provisioner.mirrors.models import MOVING_MIRRORS, Mirror, MirrorOperation
from provisioner.mirrors.queries import next_to_transfer
from provisioner.mirrors.workflows import CREATE, DELETE, TRANSFER
from provisioner.workspaces.models import Workspace
from tests.chaos import faultboard
from tests.chaos.builds import Builder
from tests.chaos.freezing import SLOW, Place
from tests.chaos.judge import IN_FLIGHT, Fault
from tests.chaos.mirror_judge import MirrorJudge
from tests.chaos.patience import from_database, insist
from tests.chaos.people import Answer, Person
from tests.chaos.transfers import transfer_of
from tests.chaos.trial import (
    FREEZE,
    MOMENT_WITHIN_SECONDS,
    SETTLED_WITHIN_SECONDS,
    WEIGHTS,
    Stuck,
    Trial,
    World,
)
from tests.chaos.witness import OntapWitness, Perforce

# Its faults are put apart from those of trials, builds and bisections.
APART = 30_000_000
ABROAD = "abroad"
M = Mirror.State
LINK = "link"
VICTIMS = {
    **{name: weight for name, weight in WEIGHTS.items() if name != "perforce"},
    LINK: 6,
}
FAULTS = [kind for kind in faultboard.KINDS if kind.startswith("ontap")]
STEPS: dict[str, list[Place]] = {
    str(kind): [(str(kind), spec.name) for spec in steps]
    for kind, steps in (
        (MirrorOperation.CREATE, CREATE),
        (MirrorOperation.TRANSFER, TRANSFER),
        (MirrorOperation.DELETE, DELETE),
    )
}
TRIED = 8
POLL_EVERY_SECONDS = 0.1
WHAT_CHANGES = ("state", "status_code", "status_message", "start", "relationship_uuid")


class Link:
    """The network between the clusters, as SnapMirror feels it."""

    def __init__(self, abroad: OntapWitness) -> None:
        self._abroad = abroad
        self._cut = 0
        self._lock = threading.Lock()

    def be_slow(self, *, transfer_seconds: float) -> None:
        """Have transfers last so long, until the cluster starts again."""
        self._set(transfer_seconds=transfer_seconds)

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
        insist(
            lambda: self._abroad.request("PATCH", "/lab/settings", settings),
            on=(OSError, HTTPException),
        )


class CloneAbroad(Trial):
    """A workspace at the mirror's site; `meanwhile` runs once while it is there."""

    def __init__(
        self,
        world: World,
        *,
        seed: int,
        person: Person,
        p4: Perforce,
        template: str,
        meanwhile: Callable[[], None],
    ) -> None:
        super().__init__(world, seed=seed, person=person, p4=p4, transfer=transfer_of)
        self.template = template
        self.meanwhile = meanwhile

    def _make(self) -> None:
        body = {"template": self.template, "site": ABROAD, "name": self.name}
        self._disturbed("create", "POST", "/workspaces", body)

    def _work(self) -> None:
        super()._work()
        self.meanwhile()


class MirrorTrial:
    """A mirror of one template, from its creation to its deletion."""

    def __init__(
        self,
        world: World,
        *,
        abroad: World,
        judge: MirrorJudge,
        link: Link,
        seed: int,
        admin: Person,
        builder: Builder,
        template: str,
    ) -> None:
        self.world = world
        self.abroad = abroad
        self.judge = judge
        self.link = link
        self.seed = seed
        self.admin = admin
        self.builder = builder
        self.template = template
        self.rng = random.Random(APART + seed)  # noqa: S311 - repeatable on purpose
        self.history: list[str] = []
        self.faults: list[Fault] = []
        self.clone: Trial | None = None

    def run(self, *, person: Person, p4: Perforce) -> list[Fault]:
        """Create it, clone from it, change it meanwhile, delete it; judge each."""
        self.clone = CloneAbroad(
            self.abroad,
            seed=self.seed,
            person=person,
            p4=p4,
            template=self.template,
            meanwhile=self._meanwhile,
        )
        try:
            self._create()
            self.faults += self.clone.run()
            self._delete()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(APART + self.seed)
        return self.faults

    def _blame(self, *faults: Fault) -> None:
        said = "; ".join(self.history)
        self.faults += [
            Fault(kind=fault.kind, what=f"{fault.what} [mirror: {said}]")
            for fault in faults
        ]

    # --- the story

    def _create(self) -> None:
        body = {
            "template": self.template,
            "site": ABROAD,
            "keep": self.rng.choice((1, 2, 10)),
            "start": self.rng.choice((Mirror.Start.AT_ONCE, Mirror.Start.BY_HAND)),
        }
        self._disturbed(MirrorOperation.CREATE, "POST", "/mirrors", body)
        self._insist_on_default()

    def _meanwhile(self) -> None:
        """Transfer, retry and change it, and try to delete it below its clone."""
        throttle = {"throttle_kilobytes": self.rng.choice((0, 50_000))}
        self._ask("PATCH", self._path, throttle)
        if self._reloaded().state == M.READY and self.rng.random() < 0.5:
            path = f"{self._path}/retry"
            self._disturbed(MirrorOperation.CREATE, "POST", path, None)
        if self.template == self.builder.template.name and self.rng.random() < 0.7:
            self._blame(*self.builder.build_newer(seed=self.seed))
            path = f"{self._path}/transfer"
            self._disturbed(MirrorOperation.TRANSFER, "POST", path, {})
        self._insist_on_default()
        self._must_not_be_deleted()

    def _must_not_be_deleted(self) -> None:
        assert self.clone is not None
        workspace = self.clone.workspace
        if workspace is None:
            return
        answer = self._ask("DELETE", self._path)
        state = from_database(
            lambda: Workspace.objects.values_list("state", flat=True).get(
                pk=workspace.pk
            )
        )
        if state == Workspace.State.READY and answer.status != 409:
            self._blame(Fault(kind="lost", what=f"deleted below {workspace.name}"))
        self._judge("delete while in use")

    def _delete(self) -> None:
        """Delete it as an administrator would: that works always, sooner or later."""
        for attempt in range(TRIED):
            if attempt:
                self._ask("DELETE", self._path)
                self._settle()
                self._judge("delete again")
            else:
                self._disturbed(MirrorOperation.DELETE, "DELETE", self._path, None)
            if self._reloaded().state == M.DELETED:
                return
        raise Stuck(f"mirror not deleted: {self.mirror.status_message}")

    def _insist_on_default(self) -> None:
        """Retry until it has the template's default snapshot; that works always."""
        for _ in range(TRIED):
            mirror = self._reloaded()
            if mirror.state == M.READY and not self._lacks_default():
                return
            is_by_hand = mirror.state == M.READY and mirror.start == "by-hand"
            verb = "transfer" if is_by_hand else "retry"
            self._ask("POST", f"{self._path}/{verb}", {} if is_by_hand else None)
            self._settle()
            self._judge(verb)
        raise Stuck(f"nothing arrives: {mirror.state} {mirror.status_message}")

    def _lacks_default(self) -> bool:
        return from_database(lambda: next_to_transfer(self.mirror)) is not None

    # --- one request and its trouble

    def _disturbed(self, kind: str, method: str, path: str, body: Any) -> None:
        """Ask for something, break something meanwhile, wait, judge."""
        rng, board, key = self.rng, self.world.board, APART + self.seed
        before = self._last_operation_id()
        trouble = rng.choice(("kill", "kill", "fault", "both", "none"))
        has_fault, has_kill = trouble in ("fault", "both"), trouble in ("kill", "both")
        fault_kind = rng.choice(FAULTS)
        fault = faultboard.draw(fault_kind, rng)
        victim = rng.choices([*VICTIMS], [*VICTIMS.values()])[0]
        place, is_done = rng.choice(STEPS[kind]), rng.random() < 0.5
        down_seconds = rng.choice((0.0, 0.3, 1.5))
        if has_kill and victim == FREEZE:
            place, is_done = self.world.freezer.next_of(STEPS[kind]), False
            fault, fault_kind, has_fault = SLOW, "slow", True
        self.link.be_slow(transfer_seconds=rng.choice((0.0, 0.5, 1.5)))
        self.history.append(kind)
        if has_fault:
            self.history.append(f"({fault_kind})")
            board.put(key, fault)
        self._ask(method, path, body)
        steps = self._steps(place, later_than=before)
        if has_kill:
            when = f"{'after' if is_done else 'in'} {place[1]}"
            self.history.append(f"({victim} {when}, {down_seconds} s)")
            self._wait_for(steps, is_done=is_done)
            self._kill(victim, place, steps, down_seconds=down_seconds)
        self._settle()
        board.end(key)
        self._judge(kind)

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

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask again while something else is under way.

        Raises: Stuck.
        """
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while True:
            answer = self.admin.ask(method, path, body)
            if answer.status not in (200, 202, 404, 409):
                raise Stuck(f"{method} {path}: {answer.status} {answer.body}")
            if path == "/mirrors":
                # Where its answer was lost, it exists.
                self._find()
            if answer.status != 409 or answer.body["code"] != "mirror_busy":
                return answer
            if time.monotonic() > ends:
                raise Stuck(f"{method} {path}: busy for long")
            time.sleep(POLL_EVERY_SECONDS)

    def _find(self) -> None:
        mirrors = Mirror.objects.select_related(
            "template__site__perforce_server", "site__perforce_server"
        )
        named = {"template__name": self.template, "site__name": ABROAD}
        self.mirror = from_database(lambda: mirrors.get(**named))

    @property
    def _path(self) -> str:
        return f"/mirrors/{self.mirror.pk}"

    def _reloaded(self) -> Mirror:
        from_database(lambda: self.mirror.refresh_from_db(fields=WHAT_CHANGES))
        return self.mirror

    # --- waiting

    def _operations(self) -> QuerySet[Operation]:
        return Operation.objects.filter(
            subject__mirror__template__name=self.template,
            subject__mirror__site__name=ABROAD,
        )

    def _last_operation_id(self) -> int:
        newest = self._operations().order_by("-pk").values_list("pk", flat=True)
        return from_database(newest.first) or 0

    def _steps(self, place: Place, *, later_than: int) -> QuerySet[Step]:
        kind, name = place
        operations = self._operations().filter(pk__gt=later_than, kind=kind)
        return Step.objects.filter(operation__in=operations.values("pk"), name=name)

    def _wait_for(self, steps: QuerySet[Step], *, is_done: bool) -> None:
        """Wait until one of the steps begins or has ended, or the mirror rests."""
        come = steps.exclude(ended_at=None) if is_done else steps.filter(attempt__gt=0)
        ends = time.monotonic() + MOMENT_WITHIN_SECONDS
        while time.monotonic() < ends and not from_database(come.all().exists):
            if not self._is_moving():
                return
            time.sleep(POLL_EVERY_SECONDS / 2)

    def _is_moving(self) -> bool:
        in_flight = Step.objects.filter(
            operation__subject__mirror=self.mirror.pk, state__in=IN_FLIGHT
        )
        return self._reloaded().state in MOVING_MIRRORS or from_database(
            in_flight.exists
        )

    def _settle(self) -> None:
        """Raises: Stuck where something moves for too long."""
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while self._is_moving():
            if time.monotonic() > ends:
                raise Stuck(f"mirror {self.mirror.state} for long")
            time.sleep(POLL_EVERY_SECONDS)

    def _judge(self, after: str) -> None:
        mirror = self._reloaded()
        state = f"{mirror.state} {mirror.status_code}".strip()
        self.world.outcomes[f"{after}: {state}"] += 1
        self.history.append(f"-> {state}")
        with self.world.servers.calm.at_work():
            self._blame(*self.judge.check_at(mirror))
