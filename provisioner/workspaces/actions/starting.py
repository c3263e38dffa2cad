"""What actions have in common: how a name is checked, how an operation begins."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

from provisioner.accounts.models import User
from provisioner.workspaces import tasks, workflow
from provisioner.workspaces.errors import InvalidRequest
from provisioner.workspaces.models import (
    Operation,
    Step,
    Template,
    Workspace,
    name_validator,
)


def check_name(name: str) -> None:
    try:
        name_validator(name)
    except ValidationError as error:
        raise InvalidRequest(f"“{name}” is not a name: {error.message}") from error


def start_operation(
    kind: Operation.Kind,
    *,
    by: User,
    workspace: Workspace | None = None,
    template: Template | None = None,
    parameters: dict[str, Any] | None = None,
) -> Operation:
    """Write an operation with its steps and queue the first ones."""
    operation = Operation.objects.create(
        kind=kind,
        workspace=workspace,
        template=template,
        requested_by=by,
        parameters=parameters or {},
    )
    Step.objects.bulk_create(
        Step(operation=operation, name=spec.name, position=position)
        for position, spec in enumerate(workflow.specs_of(operation))
    )
    tasks.advance(operation)
    return operation
