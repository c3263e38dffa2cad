"""Start operations: their steps, and the jobs of the first."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.engine import workflow
from provisioner.engine.dispatch import defer_step
from provisioner.engine.models import HasOperations, Operation, Parameters, Step
from provisioner.lib import request_ids, tracing


def start_operation(
    kind: str,
    *,
    about: HasOperations,
    by: User,
    parameters: Parameters | None = None,
    is_background: bool = False,
) -> Operation:
    """Write an operation with its steps and queue the first ones.

    Background operations have lower priority than anybody's requests.
    """
    with tracing.span(f"start {kind}", kind=tracing.Kind.PRODUCER) as span:
        operation = Operation.objects.create(
            kind=kind,
            requested_by=by,
            is_background=is_background,
            subject=about.subject,
            parameters=parameters.as_json() if parameters else {},
            request_id=request_ids.current(),
            traceparent=tracing.traceparent(),
        )
        span.note({"cloneyard.operation": operation.pk, "cloneyard.workflow": kind})
    steps = Step.objects.bulk_create(
        Step(
            operation=operation,
            name=spec.name,
            position=position,
            is_commit_point=spec.is_commit_point,
            perforce_use=spec.perforce,
            perforce_server=about.perforce_server if spec.perforce else None,
        )
        for position, spec in enumerate(workflow.specs_of(operation))
    )
    for step in workflow.ready_to_start(operation, steps):
        defer_step(operation, step)
    return operation
