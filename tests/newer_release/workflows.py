"""A step in the middle of every new workspace, which the release before lacks."""

from __future__ import annotations

import os
from dataclasses import replace

from provisioner.engine.queues import STORAGE
from provisioner.engine.step_run import StepRun
from provisioner.engine.workflow import WORKFLOWS, StepSpec
from provisioner.workspaces import workflows as _before  # noqa: F401 - registers them
from provisioner.workspaces.models import WorkspaceOperation
from tests.newer_release import STEP
from tests.newer_release.models import Noted


def ensure_newer(run: StepRun) -> None:
    """Ensure that it is noted who did this."""
    Noted.objects.create(what=STEP, process_id=os.getpid())


_provision = WORKFLOWS[WorkspaceOperation.PROVISION]
_steps = [
    replace(spec, after=(*spec.after, STEP)) if spec.name == "p4config" else spec
    for spec in _provision.steps
]
_at = [spec.name for spec in _steps].index("p4config")
_steps.insert(
    _at, StepSpec(STEP, "Do something newer", ensure_newer, STORAGE, ("owner",))
)
WORKFLOWS[WorkspaceOperation.PROVISION] = replace(_provision, steps=tuple(_steps))
