"""Logs of an operation's steps, for those who may see the operation."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import OperationOverview, StepLine, operation_overview
from provisioner.engine.queries import find_visible_operation
from provisioner.engine.subjects import crumbs_of

# Where nothing was printed yet, this is what people wait for.
_USUAL_STEP = "build"
_UNSETTLED = (
    Step.State.WAITING,
    Step.State.QUEUED,
    Step.State.RUNNING,
    Step.State.RETRYING,
)


@dataclass(frozen=True, kw_only=True)
class StepLog:
    """A step with its log, and all steps of its operation that printed something."""

    operation: Operation
    line: StepLine
    with_logs: tuple[StepLine, ...]

    @property
    def step(self) -> Step:
        return self.line.step

    @property
    def tabs(self) -> list[tuple[StepLine, bool]]:
        """All logs of the operation if there are others, and whether each is this."""
        if len(self.with_logs) < 2:
            return []
        return [(line, line.step == self.step) for line in self.with_logs]

    @property
    def crumbs(self) -> str:
        """The template of the breadcrumbs to the operation's subject."""
        return crumbs_of(self.operation)

    @property
    def is_running(self) -> bool:
        """Whether the step may still print something."""
        is_moving = self.operation.state == Operation.State.RUNNING
        return is_moving and self.step.state in _UNSETTLED

    @property
    def size_bytes(self) -> int | None:
        """The current size of its log, None if there is none."""
        try:
            return self.step.log_path.stat().st_size
        except FileNotFoundError:
            return None

    @property
    def file_name(self) -> str:
        """The file name of its download."""
        return f"{self.operation.subject}-{self.step.name}-{self.operation.pk}.log.txt"


def find_step_log(user: User, *, operation_pk: int, step: str) -> StepLog | None:
    """Return a step of an operation that the person may see, with its log, or None."""
    overview = find_operation(user, pk=operation_pk)
    return None if overview is None else log_of(overview, step=step)


def log_of(overview: OperationOverview, *, step: str) -> StepLog | None:
    """Return a step of an operation with its log; None if there is no such step."""
    line = next((line for line in overview.lines if line.step.name == step), None)
    if line is None:
        return None
    with_logs = tuple(
        other for other in overview.lines if other is line or other.has_log
    )
    return StepLog(operation=overview.operation, line=line, with_logs=with_logs)


def find_operation(user: User, *, pk: int) -> OperationOverview | None:
    """Return an operation that the person may see, with its steps, or None."""
    operation = find_visible_operation(user, pk=pk)
    return None if operation is None else operation_overview(operation)


def step_to_read(overview: OperationOverview) -> Step | None:
    """Return the step whose log matters most: running, failed, or last."""
    printed = [line for line in overview.lines if line.has_log]
    wanted = [line for line in printed if line.is_current] or [
        line for line in printed if line.step.has_failed
    ]
    if wanted or printed:
        return (wanted or printed[-1:])[0].step
    names = {line.step.name: line.step for line in overview.lines}
    return names.get(_USUAL_STEP)
