"""How long the phases of a template's builds took, one build after the other."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Prefetch

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation, Step
from provisioner.engine.queries import operations_visible_to

BUILDS_PLOTTED = 25
PHASES = ("sync", "build", "test", "snapshot")
_SHOWN = (
    *("operation", "name", "state", "attempt", "has_rejected"),
    *("started_at", "ended_at"),
)


@dataclass(frozen=True, kw_only=True)
class Took:
    """One phase of one build; `seconds` is the duration of its `attempt`."""

    operation: Operation
    step: Step
    seconds: float
    is_failed: bool


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A phase of all builds, oldest first; None if a build did not reach it."""

    name: str
    took: tuple[Took | None, ...]

    @property
    def known(self) -> list[Took]:
        return [took for took in self.took if took is not None]

    @property
    def longest_seconds(self) -> float:
        return max(took.seconds for took in self.known)

    @property
    def shortest_seconds(self) -> float:
        return min(took.seconds for took in self.known)

    @property
    def last(self) -> Took:
        return self.known[-1]

    @property
    def failed_count(self) -> int:
        return sum(took.is_failed for took in self.known)


@dataclass(frozen=True, kw_only=True)
class Durations:
    """The newest builds of a template that have ended, oldest first."""

    builds: tuple[Operation, ...]
    phases: tuple[Phase, ...]


def durations_of(user: User, template: Template) -> Durations:
    """Return how long each phase of the newest builds took, if the person may see them.

    The duration of a phase is that of its last attempt. Phases that no build reached
    are left out.
    """
    ended = operations_visible_to(user).filter(
        subject=template.subject_id, ended_at__isnull=False
    )
    steps = Step.objects.filter(name__in=PHASES).only(*_SHOWN)
    of_phases = Prefetch("steps", queryset=steps)
    newest = (
        ended.select_related(None)
        .prefetch_related(None)
        .prefetch_related(of_phases)
        .only("state", "parameters", "created_at")
    )
    builds = tuple(reversed(newest[:BUILDS_PLOTTED]))
    by_name = {
        (build.pk, step.name): Took(
            operation=build, step=step, seconds=step.seconds, is_failed=step.has_failed
        )
        for build in builds
        for step in build.steps.all()
        if step.state in (Step.State.DONE, Step.State.FAILED)
        and step.seconds is not None
    }
    phases = [
        Phase(name=name, took=tuple(by_name.get((b.pk, name)) for b in builds))
        for name in PHASES
    ]
    return Durations(
        builds=builds, phases=tuple(phase for phase in phases if phase.known)
    )
