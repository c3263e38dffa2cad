"""Rows of template builds, requested and ended as workers do it."""

from __future__ import annotations

import datetime as dt

from django.db import transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import SubmittedChange, Template
from provisioner.catalog.states import set_template_state
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from tests.support.factories import SnapshotFactory


def submitted(
    template: Template, number: int, user: str, *, at: dt.datetime | None = None
) -> SubmittedChange:
    """Record a change under the template's view, as the watch does."""
    at = at or timezone.now()
    change = SubmittedChange.objects.create(
        server=template.site.perforce_server,
        number=number,
        user=user,
        submitted_at=at,
        recorded_at=at,
        title=f"Work of {user}",
    )
    change.templates.add(template)
    return change


def build(template: Template, *, by: User, change: int) -> Operation:
    template.refresh_from_db()
    return template_build(by=by, template=template, change=change)


def fails(operation: Operation, *, step: str = "build") -> Operation:
    """End a build as a step that failed does."""
    message = "The build ended with exit code 2."
    return _failed(operation, step=step, code="build_failed", message=message)


def fails_its_tests(operation: Operation) -> Operation:
    """End a build whose tests failed: it is published with that mark, then refused."""
    now = timezone.now()
    test = operation.steps.get(name="test")
    test.state, test.started_at, test.ended_at = Step.State.DONE, now, now
    test.has_rejected = True
    test.save()
    _publish(operation, quality="failed")
    message = "The test ended with exit code 1."
    return _failed(operation, step="outcome", code="test_failed", message=message)


def succeeds(
    operation: Operation,
    *,
    quality: str = "built",
    parts: list[dict[str, object]] | None = None,
) -> Operation:
    """End a build well, with a snapshot of this quality, or of parts alone."""
    _publish(operation, quality=quality, parts=parts or [])
    return _end(operation, Operation.State.SUCCEEDED, Template.State.READY)


def _publish(operation: Operation, **fields: object) -> None:
    SnapshotFactory.create(
        template=operation.subject.template,
        change=operation.parameters["change"],
        operation=operation,
        **fields,
    )


def _failed(operation: Operation, *, step: str, code: str, message: str) -> Operation:
    row = operation.steps.get(name=step)
    row.state, row.started_at = Step.State.FAILED, timezone.now()
    row.ended_at, row.error_message = timezone.now(), message
    row.save()
    return _end(
        operation,
        Operation.State.FAILED,
        Template.State.FAILED,
        code=code,
        message=message,
    )


def _end(
    operation: Operation,
    state: Operation.State,
    template_state: Template.State,
    *,
    code: str = "",
    message: str = "",
) -> Operation:
    with transaction.atomic():
        engine_states.end_operation(operation, state, code=code, message=message)
        engine_states.skip_waiting_steps(operation)
        template = Template.objects.get(pk=operation.subject.row.pk)
        set_template_state(template, template_state, code=code, message=message)
    operation.refresh_from_db()
    return operation
