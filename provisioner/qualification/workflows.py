"""The steps of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import OWN, STORAGE
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import StepSpec, Workflow, register
from provisioner.qualification.actions.baselines import (
    baseline_end,
    baseline_measure,
)
from provisioner.qualification.models import (
    MOST_HOSTS,
    QualificationOperation,
    QualificationRun,
)
from provisioner.qualification.queries import is_visible
from provisioner.qualification.states import set_run_state
from provisioner.qualification.steps.figures import ensure_figures
from provisioner.qualification.steps.measuring import ensure_measured
from provisioner.qualification.steps.preparing import ensure_data, ensure_target
from provisioner.qualification.steps.run import QualificationStep
from provisioner.qualification.steps.workspaces import (
    ensure_nothing_left,
    ensure_workspace_figures,
)
from provisioner.sandboxes import purposes
from provisioner.sandboxes import workflows as sandboxes
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.purposes import Recipe
from provisioner.sandboxes.steps.run import SandboxRun


def _has_host(number: int) -> Callable[[Operation], bool]:
    def applies(operation: Operation) -> bool:
        hosts: int = operation.subject.row.hosts
        return hosts >= number

    return applies


_HOSTS = tuple(
    StepSpec(
        f"measure{number}",
        f"Measure from host {number}",
        partial(ensure_measured, host_number=number),
        OWN,
        ("data",),
        applies=_has_host(number),
    )
    for number in range(1, MOST_HOSTS + 1)
)
RUN = (
    StepSpec("target", "Check what is measured", ensure_target, OWN),
    StepSpec("data", "Make the files", ensure_data, OWN, ("target",)),
    *_HOSTS,
    StepSpec(
        "figures",
        "Read the server's log",
        ensure_figures,
        OWN,
        tuple(spec.name for spec in _HOSTS),
    ),
)
PROVE = (
    StepSpec("left", "Check that nothing is left", ensure_nothing_left, STORAGE),
    StepSpec(
        "figures",
        "Work out the figures",
        ensure_workspace_figures,
        STORAGE,
        ("left",),
    ),
)


def _run_of(operation: Operation) -> QualificationRun:
    run: QualificationRun = operation.subject.row
    return run


def _is_done(operation: Operation) -> None:
    run = _run_of(operation)
    set_run_state(
        run,
        QualificationRun.State.DONE,
        message=f"Measured {run.repeats} times.",
        actor=operation.requested_by,
    )
    baseline_end(run)


def _baseline_is_ready(operation: Operation) -> None:
    sandboxes.is_ready(operation)
    baseline_measure(operation.subject.sandbox)


def _has_failed(operation: Operation, failure: Failure) -> None:
    _fail(_run_of(operation), failure)


def _fail(run: QualificationRun, failure: Failure) -> None:
    if run.state == QualificationRun.State.RUNNING:
        set_run_state(
            run,
            QualificationRun.State.FAILED,
            code=failure.code,
            message=failure.message,
        )


def _visible_to(user: User) -> QuerySet[Any, Any]:
    runs = QualificationRun.objects.filter(is_visible(user))
    return runs.order_by().values("subject")


subjects.register(
    SubjectKind(
        field="qualificationrun",
        rows=lambda: QualificationRun.objects.select_related(
            *("perforce_server", "sandbox__host", "template"),
            *("site__perforce_server", "owner"),
        ),
        visible=_visible_to,
        moving=(QualificationRun.State.RUNNING,),
        fail=_fail,
        crumbs="qualification/_crumbs.html",
    )
)
for _kind, _steps in (
    (QualificationOperation.RUN, RUN),
    (QualificationOperation.PROVE, PROVE),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_is_done,
            on_failure=_has_failed,
            run=QualificationStep,
        ),
    )
register(
    SandboxOperation.BASELINE,
    Workflow(
        steps=sandboxes.CREATE,
        on_success=_baseline_is_ready,
        on_failure=sandboxes.has_failed,
        run=SandboxRun,
    ),
)
purposes.register(Sandbox.Purpose.BASELINE, Recipe(operation=SandboxOperation.BASELINE))
