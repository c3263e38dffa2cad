"""A bisection by a command, while everything breaks: it finds the right change."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from P4 import P4

from provisioner.bisect.models import Bisection, BisectionOperation
from provisioner.bisect.workflows import BISECTION_STEP
from provisioner.engine.models import Step
from provisioner.workspaces.models import Workspace
from tests.chaos import faultboard
from tests.chaos.builds import Builder
from tests.chaos.freezing import SLOW
from tests.chaos.judge import Fault
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.trial import (
    FREEZE,
    MOMENT_WITHIN_SECONDS,
    SETTLED_WITHIN_SECONDS,
    WEIGHTS,
    World,
)

# Its faults are put apart from those of the trials and builds of the same seed.
APART = 20_000_000
CHANGES = 5
ASKED_AT_MOST = 6
REMOVED_EVERY_SECONDS = 2.0
POLL_EVERY_SECONDS = 0.1
STEPS = [(str(BisectionOperation.STEP), spec.name) for spec in BISECTION_STEP]
COMMAND = (
    "n=$(sed -n 's/^number //p' src/file11.txt); echo \"number $n\"; "
    'test "${{n:-0}}" -lt {first_bad}'
)


@dataclass(frozen=True, kw_only=True)
class Numbered:
    """A submitted change of the template, and the number that its file has there."""

    change: int
    number: int


class BisectionTrial:
    """One search by one person, from its request until all its clones are gone."""

    def __init__(
        self, world: World, *, seed: int, person: Person, builder: Builder
    ) -> None:
        self.world = world
        self.seed = seed
        self.person = person
        self.builder = builder
        self.rng = random.Random(APART + seed)

    def run(self) -> list[Fault]:
        """Search with trouble; return what was found wrong."""
        self.builder.submit_until(CHANGES, seed=self.seed)
        changes = self._changes()[-CHANGES:]
        first_bad = self.rng.choice(changes[1:]).number
        asked = {
            "template": self.builder.template.name,
            "good": changes[0].change,
            "bad": changes[-1].change,
            "command": COMMAND.format(first_bad=first_bad),
        }
        said, found = self._search(asked)
        if not found:
            wanted = next(c.change for c in changes if c.number >= first_bad)
            found = self._judge(wanted)
        found += self._remove_clones()
        return [Fault(kind=f.kind, what=f"{f.what} [bisect {said}]") for f in found]

    def _search(self, asked: dict[str, Any]) -> tuple[str, list[Fault]]:
        """Ask, and ask again where the server did not say what was submitted."""
        said = ""
        for _ in range(ASKED_AT_MOST):
            answer = self.person.ask("POST", "/bisections", asked)
            if answer.status != 202:
                return said, [Fault(kind="stuck", what=f"bisection: {answer.body}")]
            self.id = int(answer.body["id"])
            said = said or self._disturb()
            found = self._settle()
            if found or self._now().status_code != "changes_not_read":
                return said, found
            self.world.outcomes["bisect: changes not read"] += 1
        return said, []

    def _changes(self) -> list[Numbered]:
        """Return what was submitted, oldest first, with what it has."""
        path = f"//depot/{self.builder.template.name}/src/file11.txt"

        def ask(p4: P4) -> list[Numbered]:
            p4.exception_level = 1
            found = []
            for row in p4.run("changes", "-s", "submitted", path):
                text = p4.run("print", "-q", f"{path}@{row['change']}")[-1]
                number = re.search(r"^number (\d+)$", str(text), re.M)
                found.append(
                    Numbered(
                        change=int(row["change"]),
                        number=int(number[1]) if number else 0,
                    )
                )
            return sorted(found, key=lambda one: one.change)

        return self.builder.p4.insist(ask)

    def _disturb(self) -> str:
        """Break something at a step of one of its clones; say what."""
        rng = self.rng
        name = rng.choice(STEPS)[1]
        victim = rng.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        kind = rng.choice(faultboard.KINDS)
        fault = faultboard.draw(kind, rng)
        if rng.random() < 0.4:
            self.world.board.put(APART + self.seed, fault)
            self._wait_for(name)
            return f"with {kind}"
        if victim != FREEZE:
            self._wait_for(name)
            self.world.servers.kill(victim, down_seconds=rng.choice((0.0, 0.5)))
            return f"with kill {victim} in {name}"
        place = self.world.freezer.next_of(STEPS)
        self.world.board.put(APART + self.seed, SLOW)
        self._wait_for(place[1])
        who = self.world.freezer.freeze_in(self._steps(place[1]), place=place)
        return f"with freeze of {who or 'nobody'} in {place[1]}"

    def _steps(self, name: str) -> QuerySet[Step]:
        return Step.objects.filter(
            operation__subject__workspace__bisection_step__bisection=self.id,
            operation__kind=BisectionOperation.STEP,
            name=name,
        )

    def _wait_for(self, name: str) -> None:
        running = self._steps(name).filter(state=Step.State.RUNNING)
        ends = time.monotonic() + MOMENT_WITHIN_SECONDS
        while time.monotonic() < ends and self._now().is_running:
            if from_database(running.exists):
                return
            time.sleep(POLL_EVERY_SECONDS)

    def _now(self) -> Bisection:
        return from_database(lambda: Bisection.objects.get(pk=self.id))

    def _settle(self) -> list[Fault]:
        """Wait for its end; what waits for a verdict is tried again."""
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while (now := self._now()).is_running:
            if time.monotonic() > ends:
                said = f"{now.status_code} {now.status_message}"
                return [Fault(kind="stuck", what=f"bisection {self.id}: {said}")]
            self.world.board.end(APART + self.seed)
            if now.status_code == "waits_for_verdict":
                step = from_database(now.steps.filter(verdict="").first)
                if step is not None:
                    verdict = {"change": step.change, "verdict": "again"}
                    path = f"/bisections/{self.id}/verdict"
                    self.person.ask("POST", path, verdict)
            time.sleep(POLL_EVERY_SECONDS)
        return []

    def _judge(self, wanted: int) -> list[Fault]:
        now = self._now()
        self.world.outcomes[f"bisect: {now.state}"] += 1
        if (now.state, now.first_bad) == (Bisection.State.FOUND, wanted):
            return []
        said = f"{now.state} {now.first_bad} {now.status_message}"
        return [Fault(kind="lost", what=f"bisection: {said}, not change {wanted}")]

    def _remove_clones(self) -> list[Fault]:
        """Wait until its clones are gone; what failed is asked for again."""
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        clones = Workspace.objects.filter(bisection_step__bisection=self.id)
        while left := from_database(
            lambda: list(clones.exclude(state=Workspace.State.RETIRED))
        ):
            if time.monotonic() > ends:
                states = [f"{one.name}: {one.state}" for one in left]
                return [Fault(kind="stuck", what=f"clones of a bisection: {states}")]
            for clone in (c for c in left if c.state == Workspace.State.FAILED):
                path = f"/workspaces/{clone.pk}?unsubmitted=discard&purge=true"
                self.person.ask("DELETE", path)
            for clone in (c for c in left if c.state == Workspace.State.TRASHED):
                self.person.ask("POST", f"/workspaces/{clone.pk}/purge")
            time.sleep(REMOVED_EVERY_SECONDS)
        return []
