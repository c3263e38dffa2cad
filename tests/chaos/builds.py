"""New snapshots of a template, built while everything breaks."""

from __future__ import annotations

import random
import threading
import time

from django.db.models import QuerySet
from P4 import P4

from provisioner.catalog.models import Template, TemplateOperation
from provisioner.catalog.workflows import TEMPLATE_BUILD
from provisioner.engine.models import Operation, Step
from tests.chaos import faultboard
from tests.chaos.freezing import SLOW
from tests.chaos.judge import IN_FLIGHT, Fault
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.trial import (
    FREEZE,
    MOMENT_WITHIN_SECONDS,
    SETTLED_WITHIN_SECONDS,
    WEIGHTS,
    World,
)
from tests.chaos.witness import Perforce

BUILDS_TRIED = 6
LOOK_FOR_MOMENT_EVERY_SECONDS = 0.05
POLL_EVERY_SECONDS = 0.3
STEPS = [(str(TemplateOperation.BUILD), spec.name) for spec in TEMPLATE_BUILD]
WHAT_CHANGES = ("state", "status_code", "status_message")


class Builder:
    """An administrator who builds one template again and again, one at a time."""

    def __init__(self, admin: Person, world: World, *, p4: Perforce, name: str) -> None:
        self.admin = admin
        self.world = world
        self.p4 = p4
        self.template = from_database(
            lambda: Template.objects.select_related("site").get(name=name)
        )
        self._lock = threading.Lock()
        self._number = 0

    @staticmethod
    def build_first(admin: Person, name: str) -> list[Fault]:
        """Build a template while nothing breaks yet."""
        template = Template.objects.get(name=name)
        admin.ask("POST", f"/templates/{template.pk}/build", {})
        _settle(template)
        if template.state != Template.State.READY:
            return [Fault(kind="stuck", what=f"{name}: {template.status_message}")]
        return []

    def run(self, seed: int) -> list[Fault]:
        """Submit a change and build it, with trouble; then until it is there."""
        rng = random.Random(-seed)
        with self._lock:
            self._submit(seed)
            said = self._disturbed_build(seed, rng)
            return [
                Fault(kind=fault.kind, what=f"{fault.what} [{said}]")
                for fault in self._finish()
            ]

    def build_newer(self, *, seed: int) -> list[Fault]:
        """Build another snapshot while nothing breaks yet."""
        with self._lock:
            self._submit(seed)
            self._ask()
            return self._finish()

    def submit_until(self, count: int, *, seed: int) -> None:
        """Submit changes until there are so many."""
        with self._lock:
            while self._number < count:
                self._submit(seed)

    def settle(self) -> list[Fault]:
        """Build until it is there, with nothing breaking any more."""
        with self._lock:
            return self._finish()

    def _finish(self) -> list[Fault]:
        for _ in range(BUILDS_TRIED):
            if not _settle(self.template):
                return [Fault(kind="stuck", what=_why_stuck(self.template))]
            if self.template.state == Template.State.READY:
                with self.world.servers.calm.at_work():
                    return self.world.judge.check_template(self.template)
            self._ask()
        return [Fault(kind="stuck", what=f"build: {self.template.status_message}")]

    def _ask(self, *, times: int = 1) -> None:
        self.admin.ask("POST", f"/templates/{self.template.pk}/build", {}, times=times)

    def _disturbed_build(self, seed: int, rng: random.Random) -> str:
        step = rng.choice([spec.name for spec in TEMPLATE_BUILD])
        is_done = rng.random() < 0.5
        kind = rng.choice(faultboard.KINDS)
        fault = faultboard.draw(kind, rng)
        victim = rng.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        has_fault = rng.random() < 0.5
        when = f"{'after' if is_done else 'in'} {step}"
        before = from_database(
            lambda: self.template.operations.order_by("-pk").values_list("pk")[0][0]
        )
        freezes = not has_fault and victim == FREEZE
        place = (str(TemplateOperation.BUILD), step)
        if freezes:
            place, is_done = self.world.freezer.next_of(STEPS), False
            self.world.board.put(-seed, SLOW)
        self._ask(times=rng.choice((1, 1, 2)))
        self._wait_for(place[1], is_done=is_done, later_than=before)
        if freezes:
            self.world.freezer.freeze_in(
                self._steps(place[1], later_than=before), place=place
            )
            self.world.board.end(-seed)
        elif has_fault:
            self.world.board.put(-seed, fault)
        else:
            self.world.servers.kill(victim, down_seconds=rng.choice((0.0, 0.5)))
        _settle(self.template)
        self.world.board.end(-seed)
        if freezes:
            return f"build with a freeze in {place[1]}"
        return f"build with {kind if has_fault else f'kill {victim}'} {when}"

    def _wait_for(self, name: str, *, is_done: bool, later_than: int) -> None:
        steps = self._steps(name, later_than=later_than)
        steps = steps.exclude(ended_at=None) if is_done else steps.filter(attempt__gt=0)
        ends = time.monotonic() + MOMENT_WITHIN_SECONDS
        while time.monotonic() < ends:
            from_database(lambda: self.template.refresh_from_db(fields=WHAT_CHANGES))
            if (
                from_database(steps.all().exists)
                or self.template.state != Template.State.BUILDING
            ):
                return
            time.sleep(LOOK_FOR_MOMENT_EVERY_SECONDS)

    def _steps(self, name: str, *, later_than: int) -> QuerySet[Step]:
        return Step.objects.filter(
            operation__subject__template=self.template,
            operation_id__gt=later_than,
            name=name,
        )

    def _submit(self, seed: int) -> None:
        """Submit a change of one file, so that snapshots differ."""
        depot_path = f"//depot/{self.template.name}/src/file11.txt"
        self._number += 1
        number = self._number

        def use(p4: P4) -> None:
            client = "chaos-submitter"
            p4.client = client
            p4.exception_level = 1
            root = p4.cwd + "/submit"
            spec = p4.fetch_client(client)
            spec["Root"], spec["Host"] = root, ""
            spec["View"] = [f"//depot/... //{client}/..."]
            p4.save_client(spec)
            p4.run("revert", "//...")
            p4.run("sync", "-f", depot_path)
            p4.run("edit", depot_path)
            where = p4.run("where", depot_path)[0]["path"]
            with open(where, "w") as file:
                file.write(f"snapshot {seed}\nnumber {number}\n")
            p4.run("submit", "-d", f"snapshot {seed}")

        self.p4.insist(use)


def _settle(template: Template) -> bool:
    """Wait until nothing moves; say whether that came about."""
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS

    def is_moving() -> bool:
        template.refresh_from_db(fields=WHAT_CHANGES)
        return (
            template.state == Template.State.BUILDING
            or Step.objects.filter(
                operation__subject__template=template, state__in=IN_FLIGHT
            ).exists()
        )

    while from_database(is_moving):
        if time.monotonic() > ends:
            return False
        time.sleep(POLL_EVERY_SECONDS)
    return True


def _why_stuck(template: Template) -> str:
    operation = from_database(
        lambda: Operation.objects.filter(subject=template.subject_id).first()
    )
    steps = from_database(
        lambda: list(
            Step.objects.filter(operation=operation).values_list(
                "name", "state", "attempt", "error_message"
            )
        )
    )
    return f"build of {template}: {steps}"
