"""Results that steps hand on: typed in code, JSON in the step's row.

A result is a frozen dataclass beside the step that returns it. A step whose outcome no
other code reads returns None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from provisioner.engine.models import Operation
from provisioner.lib.typed_json import from_json


@dataclass(frozen=True)
class StepResult:
    """The base of results. Fields hold what JSON can, and dataclasses of that.

    `step` is the name of the step that returns it, in every workflow with such a step.
    """

    step: ClassVar[str]

    @property
    def has_rejected(self) -> bool:
        """Whether the step did its work, and rejected what it checked."""
        return False


AnyResult = TypeVar("AnyResult", bound=StepResult)


def find_result(operation: Operation, of: type[AnyResult]) -> AnyResult | None:
    """Return what a step of an operation handed on; None before, or without the step.

    If the operation's steps are loaded, it reads those.
    """
    for step in operation.steps.all():
        if step.name == of.step and step.result is not None:
            return from_json(of, step.result)
    return None
