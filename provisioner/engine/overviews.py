"""Operations with their steps, as pages show them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.subjects import crumbs_of
from provisioner.engine.waits import Wait, wait_of
from provisioner.engine.workers import alive_workers, unserved
from provisioner.lib.times import duration_text
from provisioner.web.notices import Level, Notice
from provisioner.web.templatetags.cloneyard import ago, state_icon

# How long a running worker that has time leaves a queued step at most.
SOON = dt.timedelta(seconds=10)
UNDER_WAY = "engine/_under_way.html"


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """A step as its operation's page shows it.

    `wait` is its wait for a slot at its Perforce server, None if it does not wait.
    `unserved` is its queue if it waits and no running worker serves that, else "".
    """

    step: Step
    title: str
    operation: Operation
    wait: Wait | None = None
    unserved: str = ""

    @property
    def is_current(self) -> bool:
        return self.step.state in (Step.State.RUNNING, Step.State.RETRYING)

    @property
    def state_word(self) -> str:
        """Its state; "not started" if the operation ended before it."""
        if self.wait is not None:
            return "Waits for a slot"
        is_cut_short = self.operation.state != Operation.State.SUCCEEDED
        if self.step.state == Step.State.SKIPPED and is_cut_short:
            return "Not started"
        return self.step.get_state_display()

    @property
    def why_it_waits(self) -> str:
        """Why a queued step has not started, "" where a worker takes it soon."""
        if self.wait is not None:
            return self.wait.sentence
        if not self.unserved:
            return ""
        return (
            f"No running worker serves the queue {self.unserved}. It starts once an "
            "administrator has started one."
        )

    @property
    def trouble(self) -> str:
        """Why its last attempt failed, "" if that was what it waits for now."""
        if self.wait is not None and self.wait.maintenance:
            return ""
        return self.step.error_message

    @property
    def has_log(self) -> bool:
        """Whether it has a log that still exists."""
        return self.step.attempt > 0 and self.step.log_path.exists()

    @property
    def standing(self) -> str:
        """Its state, with the number of the attempt after the first."""
        attempt = self.step.attempt
        return (
            f"{self.state_word}, attempt {attempt}" if attempt > 1 else self.state_word
        )

    @property
    def next_attempt(self) -> SafeString:
        """A sentence about when it will be retried, "" if it will not."""
        if self.step.state != Step.State.RETRYING:
            return SafeString()
        retry_at = self.step.retry_at
        if retry_at is None or retry_at <= timezone.now():
            return SafeString("The next attempt starts soon.")
        return format_html("The next attempt starts {}.", ago(retry_at))

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
        """A sentence about how and when it ended, "" before that."""
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
    def measure(self) -> str:
        """Its progress: "812 of 3,612 files, 90 a second"; "" unless it is running."""
        if self.step.state != Step.State.RUNNING:
            return ""
        unit, text = (self.step.progress.get(name, "") for name in ("unit", "text"))
        number = f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}"
        counted = f"{number} {unit}".strip() if self.total or self.done else ""
        return ", ".join(filter(None, [counted, text]))

    @property
    def span(self) -> tuple[str, str] | None:
        """Its start and its length, in percent of its operation's time."""
        ended_at = self.operation.ended_at
        if ended_at is None or self.step.ended_at is None or not self.step.attempt:
            return None
        whole = (ended_at - self.operation.created_at).total_seconds()
        began_at = self.step.first_started_at or self.step.ended_at
        if whole <= 0:
            return None
        before = (began_at - self.operation.created_at).total_seconds() / whole
        length = (self.step.ended_at - began_at).total_seconds() / whole
        return f"{max(before, 0) * 100:.2f}", f"{max(length * 100, 0.6):.2f}"


@dataclass(frozen=True, kw_only=True)
class OperationOverview:
    operation: Operation
    lines: tuple[StepLine, ...]

    @property
    def crumbs(self) -> str:
        """The template of the breadcrumbs to its subject."""
        return crumbs_of(self.operation)

    @property
    def is_running(self) -> bool:
        return self.operation.state == Operation.State.RUNNING

    @property
    def seconds(self) -> float:
        ended_at = self.operation.ended_at or timezone.now()
        return (ended_at - self.operation.created_at).total_seconds()

    @property
    def notices(self) -> list[Notice]:
        """What came of it, where it did not just succeed."""
        operation = self.operation
        if self.is_running or not operation.status_message:
            return []
        has_failed = operation.state == Operation.State.FAILED
        notice = Notice(
            level=Level.ERROR if has_failed else Level.WARNING,
            texts=(operation.status_message,),
            icon_name=state_icon(operation.state),
        )
        return [notice]

    @property
    def settled_count(self) -> int:
        settled = (Step.State.DONE, Step.State.SKIPPED)
        return sum(line.step.state in settled for line in self.lines)

    @property
    def ran_count(self) -> int:
        """How many steps were started."""
        return sum(line.step.attempt > 0 for line in self.lines)

    @property
    def announcement(self) -> str:
        """A sentence about its current step. It changes only with the step."""
        if not self.is_running:
            return f"{self.operation.get_state_display()}."
        for number, line in enumerate(self.lines, start=1):
            if line.is_current:
                said = f"Step {number} of {len(self.lines)}: {line.title}."
                if line.step.state == Step.State.RETRYING:
                    said += f" {line.step.error_message} It will be retried."
                return said
        for line in self.lines:
            if line.wait is not None:
                # Without its place: screen readers would repeat it at each change.
                why = "is paused" if line.wait.is_paused else "is busy with others"
                if line.wait.maintenance:
                    why = "is in maintenance"
                return f"Waiting: the Perforce server {line.wait.server} {why}."
        return "Waiting for a worker."


def under_way(operations: list[Operation]) -> OperationOverview | None:
    """Return the first of these operations with its steps if it is under way."""
    if not operations or operations[0].state != Operation.State.RUNNING:
        return None
    return operation_overview(operations[0])


def operation_overview(operation: Operation) -> OperationOverview:
    """Return the overview of an operation loaded with its steps."""
    titles = {spec.name: spec.title for spec in workflow.known_steps(operation)}
    steps = list(operation.steps.all())
    missing = _unserved_queues(steps)
    return OperationOverview(
        operation=operation,
        lines=tuple(
            StepLine(
                step=step,
                title=titles.get(step.name, step.name),
                operation=operation,
                wait=wait_of(step),
                unserved=missing.get(step.pk, ""),
            )
            for step in steps
        ),
    )


def _unserved_queues(steps: Iterable[Step]) -> dict[int, str]:
    """Return the queues that no running worker serves, by the id of a queued step.

    Two queries if a step has been queued for long, else none.
    """
    since = timezone.now() - SOON
    jobs = {
        step.job_id: step.pk
        for step in steps
        if step.state == Step.State.QUEUED and step.queued_at and step.queued_at < since
    }
    if not jobs:
        return {}
    queued = ProcrastinateJob.objects.filter(pk__in=jobs, status="todo")
    queues = dict(queued.values_list("pk", "queue_name"))
    missing = unserved(queues.values(), alive_workers())
    return {jobs[job]: queue for job, queue in queues.items() if queue in missing}
