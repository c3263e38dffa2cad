"""How long the phases of a template's builds took, one build after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, prefetch_related_objects

from provisioner.engine.models import Operation, Step

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


def durations_of(operations: Sequence[Operation]) -> Durations:
    """Return how long each phase of those that have ended took. One query.

    The operations are those of a template, newest first. The duration of a phase is
    that of its last attempt. Phases that no build reached are left out.
    """
    ended = [one for one in operations if one.ended_at is not None][:BUILDS_PLOTTED]
    steps = Step.objects.filter(name__in=PHASES).only(*_SHOWN).order_by()
    prefetch_related_objects(ended, Prefetch("steps", steps, to_attr="phases"))
    builds = tuple(reversed(ended))
    by_name = {
        (build.pk, step.name): Took(
            operation=build, step=step, seconds=step.seconds, is_failed=step.has_failed
        )
        for build in builds
        for step in vars(build)["phases"]
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
