"""An operation with its steps, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.subjects import crumbs_of
from provisioner.engine.waits import Wait, wait_of
from provisioner.lib.times import duration_text


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """A step as its operation shows it: with its title, and how far it is.

    `wait` says so where it waits for a slot at its Perforce server.
    """

    step: Step
    title: str
    operation: Operation
    wait: Wait | None = None

    @property
    def is_current(self) -> bool:
        return self.step.state in (Step.State.RUNNING, Step.State.RETRYING)

    @property
    def state_word(self) -> str:
        """Its state. A step left out by an early end is not shown as skipped."""
        if self.wait is not None:
            return "Waits for a slot"
        is_cut_short = self.operation.state != Operation.State.SUCCEEDED
        if self.step.state == Step.State.SKIPPED and is_cut_short:
            return "Not begun"
        return self.step.get_state_display()

    @property
    def has_log(self) -> bool:
        """Whether it has printed something that is still there."""
        return self.step.attempt > 0 and self.step.log_path.exists()

    @property
    def is_due(self) -> bool:
        """Whether its next attempt could begin now."""
        return self.step.retry_at is None or self.step.retry_at <= timezone.now()

    @property
    def seconds(self) -> float | None:
        """Duration of its last or current attempt; None before the first."""
        if self.step.seconds is not None:
            return self.step.seconds
        if self.step.state != Step.State.RUNNING or self.step.started_at is None:
            return None
        return (timezone.now() - self.step.started_at).total_seconds()

    @property
    def ending(self) -> str:
        """Say how it ended and after how long, "" before that."""
        if self.step.ended_at is None or self.seconds is None:
            return ""
        after = f"after {duration_text(self.seconds)}."
        code = self.step.exit_code
        if code is None:
            return f"Ended {after}"
        if code < 0:
            return f"Ended by signal {-code} {after}"
        return f"Ended with exit code {code} {after}"

    @property
    def done(self) -> int:
        return int(self.step.progress.get("done", 0))

    @property
    def total(self) -> int:
        return int(self.step.progress.get("total", 0))

    @property
    def is_measured(self) -> bool:
        """Whether its end is known, so that a bar says something."""
        return self.total > 0 and self.step.state == Step.State.RUNNING

    @property
    def span(self) -> tuple[float, float] | None:
        """Return where it begins and how long it is, in percent of its operation."""
        ended_at = self.operation.ended_at
        if ended_at is None or self.step.ended_at is None or not self.step.attempt:
            return None
        whole = (ended_at - self.operation.created_at).total_seconds()
        began_at = self.step.first_started_at or self.step.ended_at
        if whole <= 0:
            return None
        before = (began_at - self.operation.created_at).total_seconds() / whole
        length = (self.step.ended_at - began_at).total_seconds() / whole
        return (max(before, 0) * 100, max(length * 100, 0.6))


@dataclass(frozen=True, kw_only=True)
class OperationOverview:
    operation: Operation
    lines: tuple[StepLine, ...]

    @property
    def crumbs(self) -> str:
        """The template of the links that lead to its subject."""
        return crumbs_of(self.operation)

    @property
    def is_running(self) -> bool:
        return self.operation.state == Operation.State.RUNNING

    @property
    def seconds(self) -> float:
        ended_at = self.operation.ended_at or timezone.now()
        return (ended_at - self.operation.created_at).total_seconds()

    @property
    def settled_count(self) -> int:
        settled = (Step.State.DONE, Step.State.SKIPPED)
        return sum(line.step.state in settled for line in self.lines)

    @property
    def ran_count(self) -> int:
        """How many steps were needed and began."""
        return sum(line.step.attempt > 0 for line in self.lines)

    @property
    def announcement(self) -> str:
        """Say in a sentence where it is; changes only when that does."""
        if not self.is_running:
            return f"{self.operation.get_state_display()}."
        for number, line in enumerate(self.lines, start=1):
            if line.is_current:
                said = f"Step {number} of {len(self.lines)}: {line.title}."
                if line.step.state == Step.State.RETRYING:
                    said += f" {line.step.error_message} It will be tried again."
                return said
        for line in self.lines:
            if line.wait is not None:
                # Not how many are before it: that would be read out again and again.
                why = "is paused" if line.wait.is_paused else "is busy with others"
                return f"Waiting: the Perforce server {line.wait.server} {why}."
        return "Waiting for a worker."


def operation_overview(operation: Operation) -> OperationOverview:
    """Return the overview of an operation loaded with its steps."""
    titles = {spec.name: spec.title for spec in workflow.workflow_of(operation).steps}
    return OperationOverview(
        operation=operation,
        lines=tuple(
            StepLine(
                step=step,
                title=titles.get(step.name, step.name),
                operation=operation,
                wait=wait_of(step),
            )
            for step in operation.steps.all()
        ),
    )
