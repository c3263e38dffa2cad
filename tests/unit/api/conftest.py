"""Callers of the API, and rows that have been on their way."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.factories import purge


class JsonClient(APIClient):
    default_format = "json"


def api_of(user: User | None) -> APIClient:
    """Return a client that sends the user's token, or none."""
    client = JsonClient()
    if user is not None:
        _, secret = token_create(by=user)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def as_alice(alice: User) -> APIClient:
    return api_of(alice)


@pytest.fixture
def as_carol(carol: User) -> APIClient:
    return api_of(carol)


@pytest.fixture
def as_admin(admin: User) -> APIClient:
    return api_of(admin)


@pytest.fixture
def as_nobody(db: None) -> APIClient:
    return api_of(None)


@pytest.fixture
def workspace(alice: User, snapshot: Snapshot) -> Workspace:
    """One of alice's, being made."""
    return workspace_create(by=alice, template=snapshot.template, name="hers")


def end(workspace: Workspace, state: Operation.State, *, code: str = "") -> None:
    """Let the operation under way end as its last step would have it."""
    operation = workspace.operations.get(state=Operation.State.RUNNING)
    engine_states.end_operation(operation, state, code=code, message=code)
    engine_states.skip_waiting_steps(operation)


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """One of alice's, ready to work in."""
    end(workspace, Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


@pytest.fixture
def failed(workspace: Workspace) -> Workspace:
    """One of alice's, whose first step failed."""
    step = Step.objects.get(operation__workspace=workspace, name="clone")
    engine_states.queue_step(step, job_id=None)
    engine_states.start_step(step)
    engine_states.fail_step(
        step, code="aggregate_full", message="The aggregate is full."
    )
    end(workspace, Operation.State.FAILED, code="aggregate_full")
    set_workspace_state(
        workspace,
        Workspace.State.FAILED,
        code="aggregate_full",
        message="The aggregate is full.",
    )
    return workspace


@pytest.fixture
def retired(ready: Workspace, alice: User) -> Workspace:
    """One of alice's, taken back."""
    workspace_retire(by=alice, workspace=ready)
    end(ready, Operation.State.SUCCEEDED)
    purge(ready)
    return ready
