"""The workflows of sandboxes: create, start again, and retire, if need be without its
host.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from provisioner.accounts.models import User
from provisioner.engine import subjects
from provisioner.engine.models import Operation
from provisioner.engine.queues import OWN, PERFORCE, STORAGE
from provisioner.engine.steps import ensure_quiet
from provisioner.engine.subjects import Failure, SubjectKind
from provisioner.engine.workflow import LIGHT, StepSpec, Workflow, register
from provisioner.sandboxes.models import (
    HOST_NOT_ASKED,
    MOVING_SANDBOXES,
    Sandbox,
    SandboxOperation,
)
from provisioner.sandboxes.queries import is_visible
from provisioner.sandboxes.states import set_sandbox_state
from provisioner.sandboxes.steps import (
    checking,
    clones,
    defanging,
    ending,
    points,
    serving,
)
from provisioner.sandboxes.steps.run import SandboxRun

CREATE = (
    StepSpec(
        "server",
        "Ask the server what it is",
        checking.ensure_server_fits,
        PERFORCE,
        perforce=LIGHT,
    ),
    StepSpec("host", "Check the host and the port", checking.ensure_host_fits, OWN),
    StepSpec(
        "point",
        "Take snapshots of the volumes",
        points.ensure_point,
        STORAGE,
        ("server", "host"),
    ),
    StepSpec("clone", "Clone the volumes", clones.ensure_clones, STORAGE, ("point",)),
    StepSpec("mount", "Mount the clones", clones.ensure_mounted, STORAGE, ("clone",)),
    StepSpec("owner", "Change the owner", clones.ensure_owned, OWN, ("mount",)),
    StepSpec(
        "defang",
        "Switch off what acts as the original",
        defanging.ensure_defanged,
        OWN,
        ("owner",),
    ),
    StepSpec("start", "Start the server", serving.ensure_started, OWN, ("defang",)),
    StepSpec("answer", "Wait for its answer", serving.ensure_answers, OWN, ("start",)),
)
START = (
    StepSpec("host", "Check the host and the port", checking.ensure_host_fits, OWN),
    StepSpec("mount", "Mount the clones", clones.ensure_mounted, STORAGE, ("host",)),
    StepSpec("start", "Start the server", serving.ensure_started, OWN, ("mount",)),
    StepSpec("answer", "Wait for its answer", serving.ensure_answers, OWN, ("start",)),
)
RETIRE = (
    StepSpec("quiet", "Wait for work in progress", ensure_quiet, STORAGE),
    StepSpec("stop", "Stop the server", ending.ensure_stopped, OWN, ("quiet",)),
    StepSpec(
        "destroy", "Destroy the clones", ending.ensure_destroyed, STORAGE, ("stop",)
    ),
    StepSpec(
        "release",
        "Delete the snapshots",
        ending.ensure_released,
        STORAGE,
        ("destroy",),
    ),
    StepSpec(
        "prove",
        "Prove that nothing is left",
        ending.ensure_nothing_left,
        OWN,
        ("release",),
    ),
)
ABANDON = (
    StepSpec(
        "quiet", "Wait for work in progress", ending.ensure_quiet_elsewhere, STORAGE
    ),
    StepSpec(
        "destroy", "Destroy the clones", ending.ensure_destroyed, STORAGE, ("quiet",)
    ),
    StepSpec(
        "release",
        "Delete the snapshots",
        ending.ensure_released,
        STORAGE,
        ("destroy",),
    ),
    StepSpec(
        "prove_ontap",
        "Prove that ONTAP has nothing left",
        ending.ensure_nothing_left_at_ontap,
        STORAGE,
        ("release",),
    ),
)


def _sandbox(operation: Operation) -> Sandbox:
    sandbox: Sandbox = operation.subject.sandbox
    return sandbox


def is_ready(operation: Operation) -> None:
    """Set the sandbox's state to ready."""
    sandbox = _sandbox(operation)
    set_sandbox_state(
        sandbox,
        Sandbox.State.READY,
        message=f"Ready at {sandbox.p4port}.",
        actor=operation.requested_by,
    )


def _is_retired(operation: Operation) -> None:
    set_sandbox_state(
        _sandbox(operation),
        Sandbox.State.RETIRED,
        message="Retired. Nothing of it is left.",
        actor=operation.requested_by,
    )


def _is_abandoned(operation: Operation) -> None:
    sandbox = _sandbox(operation)
    set_sandbox_state(
        sandbox,
        Sandbox.State.RETIRED,
        code=HOST_NOT_ASKED,
        message="Its clones and snapshots are destroyed, and ONTAP has nothing left. "
        f"The host {sandbox.host.name} was not asked: processes and mounts may be left "
        "there. Its worker ends them when it is back.",
        actor=operation.requested_by,
    )


def has_failed(operation: Operation, failure: Failure) -> None:
    """Record on a sandbox why its operation failed."""
    _fail(_sandbox(operation), failure)


def _fail(sandbox: Sandbox, failure: Failure) -> None:
    if sandbox.is_moving:
        set_sandbox_state(
            sandbox, Sandbox.State.FAILED, code=failure.code, message=failure.message
        )


def _visible_to(user: User) -> QuerySet[Any, Any]:
    return Sandbox.with_retired.filter(is_visible(user)).order_by().values("subject")


subjects.register(
    SubjectKind(
        field="sandbox",
        rows=lambda: Sandbox.with_retired.select_related(
            "perforce_server", "host", "owner", "site__perforce_server"
        ),
        visible=_visible_to,
        moving=MOVING_SANDBOXES,
        fail=_fail,
        crumbs="sandboxes/_crumbs.html",
    )
)
for _kind, _steps, _on_success in (
    (SandboxOperation.CREATE, CREATE, is_ready),
    (SandboxOperation.START, START, is_ready),
    (SandboxOperation.RETIRE, RETIRE, _is_retired),
    (SandboxOperation.ABANDON, ABANDON, _is_abandoned),
):
    register(
        _kind,
        Workflow(
            steps=_steps,
            on_success=_on_success,
            on_failure=has_failed,
            run=SandboxRun,
        ),
    )
