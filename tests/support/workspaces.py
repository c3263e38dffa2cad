"""Workspaces of alice in each state, and what puts them there."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from provisioner.workspaces.steps.provision import Flushed
from tests.support.factories import purge
from tests.support.requests import workspace_create

UNSUBMITTED = {
    "opened": [
        {
            "depot_file": "//depot/main/src/render.cpp",
            "client_file": "//c/src/render.cpp",
            "action": "edit",
            "change": "default",
            "user": "alice",
            "client": "c",
        }
    ],
    "shelved": [
        {
            "change": 77,
            "user": "alice",
            "client": "c",
            "description": "Try <b>culling</b>",
            "is_shelved": True,
        }
    ],
    "untracked": [{"action": "add", "depot_file": "", "path": "/mnt/w/notes.txt"}],
}


def end(
    operation: Operation,
    state: Operation.State,
    *,
    code: str = "",
    message: str = "",
    findings: dict[str, object] | None = None,
) -> None:
    """Let an operation end as its last step would have it."""
    engine_states.end_operation(
        operation, state, code=code, message=message, findings=findings
    )
    engine_states.skip_waiting_steps(operation)


def running_of(subject: Workspace | Template) -> Operation:
    return subject.operations.get(state=Operation.State.RUNNING)


def states_of(*workspaces: Workspace) -> list[str]:
    found = Workspace.objects.in_bulk([workspace.pk for workspace in workspaces])
    return [found[workspace.pk].state for workspace in workspaces]


@pytest.fixture
def workspace(alice: User, snapshot: Snapshot) -> Workspace:
    """One of alice's, being made."""
    return workspace_create(by=alice, template=snapshot.template, name="hers")


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """One of alice's, ready to work in."""
    pin = workspace.snapshot
    flush = Step.objects.get(operation__subject__workspace=workspace, name="flush")
    engine_states.queue_step(flush, job_id=None)
    engine_states.start_step(flush)
    engine_states.finish_step(
        flush, result=Flushed(have_count=pin.have_count, have_digest=pin.have_digest)
    )
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


@pytest.fixture
def failed(workspace: Workspace) -> Workspace:
    """One of alice's, whose first step failed."""
    step = Step.objects.get(operation__subject__workspace=workspace, name="clone")
    engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    engine_states.fail_step(
        step, code="aggregate_full", message="The aggregate is full."
    )
    end(running_of(workspace), Operation.State.FAILED, code="aggregate_full")
    set_workspace_state(
        workspace,
        Workspace.State.FAILED,
        code="aggregate_full",
        message="The aggregate is full.",
    )
    return workspace


@pytest.fixture
def refused(ready: Workspace, alice: User) -> Workspace:
    """One of alice's, whose retirement found unsubmitted work."""
    operation = workspace_retire(by=alice, workspace=ready)
    end(
        operation,
        Operation.State.REFUSED,
        code="unsubmitted_work",
        message="3 things in this workspace are not submitted.",
        findings=UNSUBMITTED,
    )
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.READY)
    return ready


@pytest.fixture
def retired(ready: Workspace, alice: User) -> Workspace:
    """One of alice's, taken back."""
    end(workspace_retire(by=alice, workspace=ready), Operation.State.SUCCEEDED)
    ready.refresh_from_db()
    purge(ready)
    return ready


@pytest.fixture
def build(admin: User, template: Template) -> Operation:
    """A build of the template under way."""
    return template_build(by=admin, template=template)
