"""Restoring and purging through the API."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state


@pytest.fixture
def trashed(ready: Workspace, alice: User) -> Workspace:
    """One of alice's, in the trash."""
    operation = workspace_retire(by=alice, workspace=ready)
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(ready, Workspace.State.TRASHED)
    return ready


def address(workspace: Workspace, what: str) -> str:
    return f"/api/v1/workspaces/{workspace.pk}/{what}"


def test_it_is_brought_back(api_as_alice: APIClient, trashed: Workspace) -> None:
    response = api_as_alice.post(address(trashed, "restore"))

    assert response.status_code == 202
    body = response.json()
    assert body["state"] == "restoring"
    assert body["operation"]["kind"] == "restore"
    again = api_as_alice.post(address(trashed, "restore"))
    assert again.json()["operation"] == body["operation"]


def test_it_is_purged(api_as_alice: APIClient, trashed: Workspace) -> None:
    response = api_as_alice.post(address(trashed, "purge"))

    assert response.status_code == 202
    assert response.json()["state"] == "purging"
    assert api_as_alice.post(address(trashed, "restore")).status_code == 409


@pytest.mark.parametrize(
    ("what", "code"), [("restore", "nothing_to_restore"), ("purge", "not_in_trash")]
)
def test_what_is_not_in_the_trash_stays_as_it_is(
    api_as_alice: APIClient, ready: Workspace, what: str, code: str
) -> None:
    response = api_as_alice.post(address(ready, what))

    assert response.status_code == 409
    assert response.json()["code"] == code
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


def test_retiring_says_what_becomes_of_unsubmitted_work(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    api_as_alice.delete(f"/api/v1/workspaces/{ready.pk}?unsubmitted=rescue&purge=true")

    operation = ready.operations.get(kind=WorkspaceOperation.RETIRE)
    assert operation.parameters == {"unsubmitted": "rescue", "purge": True}


@pytest.mark.parametrize("what", ["restore", "purge"])
def test_administrators_may_and_others_may_not(
    api_as_admin: APIClient,
    api_as_carol: APIClient,
    api_as_nobody: APIClient,
    trashed: Workspace,
    what: str,
) -> None:
    assert api_as_nobody.post(address(trashed, what)).status_code == 401
    assert api_as_carol.post(address(trashed, what)).status_code == 404
    assert trashed.operations.count() == 2
    assert api_as_admin.post(address(trashed, what)).status_code == 202
