"""The span of an attempt at a step, in the trace of the request that started it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.engine import workflow
from provisioner.engine.models import Step
from provisioner.lib import tracing

_UNDONE = (Step.State.FAILED, Step.State.RETRYING)


@contextmanager
def attempt_span(step: Step) -> Iterator[None]:
    """Record an attempt and its outcome; a retry is linked to the attempt before."""
    operation, attempt = step.operation, step.attempt
    facts = {
        "cloneyard.operation": operation.pk,
        "cloneyard.workflow": operation.kind,
        "cloneyard.step": step.name,
        "cloneyard.attempt": attempt,
        "cloneyard.queue": workflow.spec_of(step).queue_for(operation),
        "cloneyard.site": operation.site.name,
        "cloneyard.request_id": operation.request_id,
    }
    with tracing.span(
        f"step {step.name}",
        kind=tracing.Kind.CONSUMER,
        facts=facts,
        within=operation.traceparent,
        key=f"{step.pk}.{attempt}",
        after=f"{step.pk}.{attempt - 1}" if attempt > 1 else "",
    ) as span:
        try:
            yield
        finally:
            told = {"cloneyard.outcome": str(step.state)}
            if step.error_code:
                told["cloneyard.error_code"] = step.error_code
            span.note(told, failed=step.state in _UNDONE)
