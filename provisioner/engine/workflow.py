"""Workflows: the steps of each kind of operation, and its effects on the subject.

Features register theirs. A step starts when the steps it comes after are done. Each
belongs to a queue, served by the workers of the hosts that can reach what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import TextChoices

from provisioner.engine import kinds
from provisioner.engine.models import Operation, PerforceUse, Step
from provisioner.engine.queues import BISECTIONS, COMMANDS, HOST, OWN
from provisioner.engine.results import StepResult
from provisioner.engine.states import settled_names
from provisioner.engine.step_run import StepRun
from provisioner.engine.subjects import Failure, Site

LIGHT, SHORT, LONG = (
    PerforceUse.LIGHT,
    PerforceUse.SHORT,
    PerforceUse.LONG,
)


@dataclass(frozen=True)
class StepSpec:
    """One step of a workflow.

    `ensure` checks, acts if needed, and returns what later steps use. `applies` says
    whether an operation needs the step at all. `perforce` is what it does to the
    Perforce server, where it may have to wait for a slot. Once a commit point has
    started, the operation is neither stopped nor treated as if it had not been. Steps
    that are infrastructure fail because of storage or Cloneyard, not of any content.
    """

    name: str
    title: str
    ensure: Callable[[Any], StepResult | None]
    queue: str
    after: tuple[str, ...] = ()
    applies: Callable[[Operation], bool] = lambda operation: True
    perforce: PerforceUse = PerforceUse.NONE
    is_commit_point: bool = False
    is_infrastructure: bool = False

    @property
    def is_of_a_place(self) -> bool:
        """Whether its queue depends on the operation's subject, or on its site."""
        return self.queue in (OWN, HOST, COMMANDS, BISECTIONS)

    def queue_for(self, operation: Operation) -> str:
        """Return the queue of this step of an operation."""
        if self.queue == OWN:
            queue: str = operation.subject.row.own_queue
            return queue
        return self.queue_at(operation.site) if self.is_of_a_place else self.queue

    def queue_at(self, site: Site) -> str:
        if self.queue == HOST:
            return site.host_queue
        if self.queue == COMMANDS:
            return site.commands_queue
        return site.bisections_queue if self.queue == BISECTIONS else self.queue


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """The workflow of a kind of operation.

    `on_success` and `on_failure` update the subject in the transaction that ends the
    operation, after reloading it. Steps get a `run`.
    """

    steps: tuple[StepSpec, ...]
    on_success: Callable[[Operation], None]
    on_failure: Callable[[Operation, Failure], None]
    run: type[StepRun] = field(default=StepRun)


WORKFLOWS: dict[str, Workflow] = {}


def register(kind: TextChoices, workflow: Workflow) -> None:
    """Register the workflow of a kind of operation."""
    kinds.register(kind)
    WORKFLOWS[kind.value] = workflow


def workflow_of(operation: Operation) -> Workflow:
    return WORKFLOWS[operation.kind]


def specs_of(operation: Operation) -> tuple[StepSpec, ...]:
    """Return the steps that this operation needs, in reading order."""
    return tuple(s for s in workflow_of(operation).steps if s.applies(operation))


def knows(operation: Operation, steps: Iterable[Step]) -> bool:
    """Return whether this release has these steps of an operation.

    Workers of other releases may run beside ours: what we do not know is left to them.
    """
    known = {spec.name for spec in known_steps(operation)}
    return operation.kind in WORKFLOWS and all(step.name in known for step in steps)


def known_steps(operation: Operation) -> tuple[StepSpec, ...]:
    """Return the steps that this release has for an operation; none of other kinds."""
    known = WORKFLOWS.get(operation.kind)
    return known.steps if known else ()


def find_spec(step: Step) -> StepSpec | None:
    """Return the spec that a step's row was made from; None of other releases."""
    specs = known_steps(step.operation)
    return next((spec for spec in specs if spec.name == step.name), None)


def spec_of(step: Step) -> StepSpec:
    """Return the spec that a step's row was made from."""
    spec = find_spec(step)
    assert spec is not None, step.name
    return spec


def title_of(step: Step) -> str:
    """Return the title of a step; steps of other releases are shown by name."""
    spec = find_spec(step)
    return spec.title if spec else step.name


def ready_to_start(operation: Operation, steps: list[Step]) -> list[Step]:
    """Return waiting steps whose predecessors are done or skipped."""
    present = {step.name for step in steps}
    settled = settled_names(steps)
    return [
        step
        for step in steps
        if step.state == Step.State.WAITING
        and all(
            before in settled or before not in present
            for before in _predecessors(operation, step.name, present)
        )
    ]


def _predecessors(operation: Operation, name: str, present: set[str]) -> set[str]:
    """Return the steps to wait for, replacing those that do not apply by theirs."""
    specs = {spec.name: spec for spec in workflow_of(operation).steps}
    wanted: set[str] = set()
    check_at = list(specs[name].after)
    while check_at:
        before = check_at.pop()
        if before in present:
            wanted.add(before)
        else:
            check_at.extend(specs[before].after)
    return wanted


def perform(step: Step) -> StepResult | None:
    """Run one attempt at a step; safe to repeat."""
    return spec_of(step).ensure(workflow_of(step.operation).run(step))
