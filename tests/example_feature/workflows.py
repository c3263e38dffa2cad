"""What an errand does, step by step, and what becomes of it."""

from __future__ import annotations

from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import STORAGE
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import StepSpec, Workflow, register
from tests.example_feature.models import Errand, ErrandOperation
from tests.example_feature.queries import subjects_visible_to
from tests.example_feature.steps import ensure_back, ensure_gone

RUN = (
    StepSpec("gone", "Go", ensure_gone, STORAGE),
    StepSpec("back", "Come back", ensure_back, STORAGE, ("gone",)),
)


def _is_done(operation: Operation) -> None:
    _move(operation, Errand.State.DONE)


def _has_failed(operation: Operation, failure: Failure) -> None:
    _move(operation, Errand.State.FAILED, failure.message)


def _move(operation: Operation, to: Errand.State, message: str = "") -> None:
    errands = Errand.objects.filter(subject=operation.subject)
    errands.update(state=to, status_message=message)


def _fail(errand: Errand, failure: Failure) -> None:
    Errand.objects.filter(pk=errand.pk).update(
        state=Errand.State.FAILED, status_message=failure.message
    )


subjects.register(
    SubjectKind(
        field="errand",
        rows=lambda: Errand.objects.select_related("site__perforce_server"),
        visible=subjects_visible_to,
        moving=(Errand.State.RUNNING,),
        fail=_fail,
        crumbs="example_feature/_crumbs.html",
    )
)
register(
    ErrandOperation.RUN,
    Workflow(steps=RUN, on_success=_is_done, on_failure=_has_failed),
)
