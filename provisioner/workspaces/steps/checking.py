"""Checking for unsubmitted work on demand."""

from __future__ import annotations

from typing import Any

from provisioner.engine import states as engine_states
from provisioner.workspaces.events import asks_findings
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.run import WorkspaceRun
from provisioner.workspaces.steps.unsubmitted import check_everything


def ensure_checked(run: WorkspaceRun) -> None:
    """Check for unsubmitted work, and for what features above add. Nothing is touched.

    Raises: GatewayError.
    """
    check = check_everything(run)
    findings = check.first_findings
    answers: Any = asks_findings.send(Workspace, run=run, check=check)
    for _, others in answers:
        findings |= others
    engine_states.note_findings(run.step, findings)
