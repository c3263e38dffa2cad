"""Operations with their steps, as the engine would have left them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from provisioner.accounts.models import User
from provisioner.demo.company.studio import Studio
from provisioner.engine import workflow
from provisioner.engine.models import HasOperations, Operation, Parameters, Step
from provisioner.engine.workflow import StepSpec

NOTHING: dict[str, Any] = {}
# What steps usually take, in seconds; what is not named takes a tenth of one.
USUAL_SECONDS: dict[str, float] = {
    "access": 0.1,
    "clone": 1.6,
    "owner": 5.0,
    "flush": 4.0,
    "reconcile": 140.0,
    "unsubmitted": 9.0,
    "check": 9.0,
    "work": 7.0,
    "delete": 0.7,
    "shelve": 1.2,
    "merge": 0.8,
    "files": 6.0,
    "run": 420.0,
}
SHORTEST = 0.1


@dataclass(frozen=True, kw_only=True)
class Course:
    """How an operation went: where it failed or waits, and why.

    `seconds` are unusual durations of steps, `results` what steps returned.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    results: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    fails_at: str = ""
    stands_at: str = ""
    step_state: str = Step.State.QUEUED
    code: str = ""
    message: str = ""
    is_refused: bool = False
    findings: dict[str, Any] | None = None
    parameters: Parameters | None = None


WELL = Course()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """An operation and its steps by name."""

    operation: Operation
    steps: dict[str, Step]

    @property
    def ended_at(self) -> dt.datetime:
        """When it ended; if it has not, when it was requested."""
        return self.operation.ended_at or self.operation.created_at

    def fail(self, *, code: str, message: str) -> None:
        """Return why it failed; the failed step has the same reason."""
        self.operation.status_code = code
        self.operation.status_message = message
        for step in self.steps.values():
            if step.state == Step.State.FAILED:
                step.error_code, step.error_message = code[:60], message


class Engine:
    """Makes operations; each step begins when those that it comes after are done."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def run(
        self,
        kind: str,
        about: HasOperations,
        *,
        by: User,
        at: dt.datetime,
        course: Course = WELL,
        is_background: bool = False,
        is_numbered: bool = False,
    ) -> Ran:
        """Add an operation with its steps; if it `is_numbered`, it keeps its number."""
        rows = self._studio.rows
        operation = Operation(
            kind=kind,
            subject=about.subject,
            is_background=is_background,
            requested_by=by,
            created_at=at,
            parameters=course.parameters.as_json() if course.parameters else {},
            findings=course.findings,
        )
        (rows.add if is_numbered else rows.add_later)(operation)
        specs = workflow.specs_of(operation)
        steps = self._steps(operation, specs, course)
        operation.ended_at = max((s.ended_at for s in steps if s.ended_at), default=at)
        operation.state = Operation.State.SUCCEEDED
        if course.stands_at:
            operation.state, operation.ended_at = Operation.State.RUNNING, None
        elif course.fails_at:
            operation.state = Operation.State.FAILED
            if course.is_refused:
                operation.state = Operation.State.REFUSED
            operation.status_code = course.code
            operation.status_message = course.message
        for step in steps:
            rows.add(step)
        return Ran(operation=operation, steps={step.name: step for step in steps})

    def _steps(
        self, operation: Operation, specs: tuple[StepSpec, ...], course: Course
    ) -> list[Step]:
        site = operation.site
        after = _predecessors(operation.kind, tuple(spec.name for spec in specs))
        done: dict[str, dt.datetime] = {}
        steps: list[Step] = []
        ended_at: dt.datetime | None = None
        for position, spec in enumerate(specs):
            step = Step(
                operation=operation,
                name=spec.name,
                position=position,
                is_commit_point=spec.is_commit_point,
                perforce_use=spec.perforce,
                perforce_server=site.perforce_server if spec.perforce else None,
                progress=NOTHING,
                result=course.results.get(spec.name),
            )
            steps.append(step)
            before = after[spec.name]
            if before <= done.keys():
                ends = (done[name] for name in before)
                self._move(step, max([operation.created_at, *ends]), course)
                if step.state == Step.State.DONE and step.ended_at is not None:
                    done[step.name] = step.ended_at
                if step.state == Step.State.FAILED:
                    ended_at = step.ended_at
        for step in steps:
            if step.state == Step.State.WAITING and ended_at is not None:
                step.state, step.ended_at = Step.State.SKIPPED, ended_at
        return steps

    def _move(self, step: Step, began_at: dt.datetime, course: Course) -> None:
        """Bring a step to the state that its operation implies."""
        chance = self._studio.chance
        step.queued_at = began_at
        if step.name == course.stands_at and course.step_state == Step.State.QUEUED:
            step.state = Step.State.QUEUED
            step.job_id = None if step.perforce_use else 1
            return
        now = self._studio.now
        waited = dt.timedelta(milliseconds=chance.uniform(4, 60))
        step.first_started_at = step.started_at = min(began_at + waited, now)
        step.attempt, step.job_id = 1, chance.randrange(20_000, 900_000)
        if step.name == course.stands_at:
            step.state = course.step_state
            return
        usual = course.seconds.get(step.name, USUAL_SECONDS.get(step.name, SHORTEST))
        step.ended_at = min(step.started_at + self._studio.calendar.seconds(usual), now)
        step.state = Step.State.DONE
        if step.name == course.fails_at:
            step.state = Step.State.FAILED
            step.result = None
            step.error_code, step.error_message = course.code, course.message


@cache
def _predecessors(kind: str, present: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return what each step waits for, replacing those left out by theirs."""
    by_name = {spec.name: spec for spec in workflow.WORKFLOWS[kind].steps}
    found = {}
    for name in present:
        wanted: set[str] = set()
        look_at = list(by_name[name].after)
        while look_at:
            before = look_at.pop()
            if before in present:
                wanted.add(before)
            else:
                look_at.extend(by_name[before].after)
        found[name] = frozenset(wanted)
    return found
