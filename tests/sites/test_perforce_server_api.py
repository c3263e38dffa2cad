"""/api/v1/perforce-servers: what runs, who waits, and the switch."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine import dispatch
from provisioner.engine.models import SlotBudget
from provisioner.workspaces.models import Workspace
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspaces(alice: User, snapshot: Snapshot) -> list[Workspace]:
    """Two whose flushes may run one by one."""
    server = snapshot.template.site.perforce_server
    server.flush_limit = 1
    server.save()
    made = []
    for number in range(2):
        workspace = workspace_create(
            by=alice, template=snapshot.template, request_key=str(number)
        )
        operation = workspace.operations.get()
        dispatch.defer_step(operation, operation.steps.get(name="flush"))
        made.append(workspace)
    return made


def test_it_says_what_runs_and_what_waits(
    workspaces: list[Workspace], api_as_admin: APIClient
) -> None:
    [server] = api_as_admin.get("/api/v1/perforce-servers").json()["results"]

    assert (server["limit"], server["is_paused"], server["paused_at"]) == (
        1,
        False,
        None,
    )
    assert (server["present_limit"], server["lock_waits"]) == (1, [])
    assert (server["people_waiting"], server["machines_waiting"]) == (1, 0)
    [running], [waiting] = server["running"], server["waiting"]
    assert running["workspace"] == workspaces[0].pk
    assert waiting["workspace"] == workspaces[1].pk
    assert (waiting["step"], waiting["state"]) == ("flush", "queued")
    assert (waiting["asked_by"], waiting["is_of_machine"]) == ("alice", False)


def test_a_step_says_that_it_waits(
    workspaces: list[Workspace], api_as_alice: APIClient
) -> None:
    of_step = {}
    for workspace in workspaces:
        operation = workspace.operations.get()
        body = api_as_alice.get(f"/api/v1/operations/{operation.pk}").json()
        of_step[workspace.pk] = {step["name"]: step["wait"] for step in body["steps"]}

    assert of_step[workspaces[0].pk]["flush"] is None
    wait = of_step[workspaces[1].pk]["flush"]
    assert (wait["before"], wait["is_paused"]) == (0, False)
    assert wait["sentence"].startswith("It is next in line")
    assert of_step[workspaces[1].pk]["clone"] is None


def test_a_server_is_paused_and_resumed(
    workspaces: list[Workspace], api_as_admin: APIClient
) -> None:
    address = f"/api/v1/perforce-servers/{workspaces[0].site.perforce_server_id}"

    paused = api_as_admin.post(f"{address}/pause", {"reason": "Move it"}).json()
    assert (paused["is_paused"], paused["paused_reason"]) == (True, "Move it")
    assert paused["paused_by"]

    resumed = api_as_admin.post(f"{address}/resume", {}).json()
    assert (resumed["is_paused"], resumed["paused_by"]) == (False, None)
    assert api_as_admin.post(f"{address}/resume", {}).status_code == 200


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": 7}])
def test_a_pause_without_a_reason_is_refused(
    body: dict[str, object], workspaces: list[Workspace], api_as_admin: APIClient
) -> None:
    address = f"/api/v1/perforce-servers/{workspaces[0].site.perforce_server_id}"
    answer = api_as_admin.post(f"{address}/pause", body)
    assert answer.status_code == 400
    assert not SlotBudget.objects.exists()


def test_it_is_for_administrators(
    workspaces: list[Workspace], api_as_alice: APIClient
) -> None:
    answer = api_as_alice.get("/api/v1/perforce-servers")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
