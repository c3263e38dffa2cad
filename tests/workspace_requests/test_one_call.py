"""One call for CI: a workspace that is ready, or a reason; and a job that goes away."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.leases.actions.leases import workspace_keep
from provisioner.leases.sweeps.leases import sweep_leases
from provisioner.sites.models import ServerAbilities
from provisioner.workspace_requests.repeats import KEYS_KEPT
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.api_clients import api_of
from tests.support.workspaces import end, running_of

WORKSPACES = "/api/v1/workspaces"
ASKED = {"template": "main", "purpose": "ci", "lease": 900}


@pytest.fixture
def as_ci(ci: User) -> APIClient:
    return api_of(ci)


def ask(client: APIClient, **fields: Any) -> Any:
    return client.post(
        WORKSPACES, {**ASKED, **fields}, HTTP_IDEMPOTENCY_KEY="pipeline 7"
    )


def become(state: Workspace.State, *, code: str = "") -> Workspace:
    workspace = Workspace.objects.get()
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, state, code=code, message=code)
    return workspace


# --- the answer


def test_the_answer_says_what_it_is_and_when_it_dies(
    as_ci: APIClient, snapshot: Snapshot
) -> None:
    assert ask(as_ci).status_code == 202
    become(Workspace.State.READY)

    response = ask(as_ci)

    assert response.status_code == 201
    assert response["Idempotency-Replayed"] == "true"
    body = response.json()
    assert body["state"] == "ready"
    assert body["client_type"] == "readonly"
    assert body["verification"]["change"] == body["change"] == snapshot.change
    assert body["verification"]["client_verified"] is True
    assert "The have list of its client equals" in body["verification"]["sentence"]
    lasts = dt.datetime.fromisoformat(body["lease"]["ends_at"]) - timezone.now()
    assert dt.timedelta(seconds=600) < lasts <= dt.timedelta(seconds=900)


def test_a_first_answer_is_no_repetition(as_ci: APIClient, snapshot: Snapshot) -> None:
    assert "Idempotency-Replayed" not in ask(as_ci)


def test_what_could_not_be_made_is_a_refusal(
    as_ci: APIClient, snapshot: Snapshot
) -> None:
    ask(as_ci)
    workspace = become(Workspace.State.FAILED, code="aggregate_full")

    response = ask(as_ci)

    assert response.status_code == 409
    body = response.json()
    assert body["code"] == "workspace_failed"
    assert body["workspace"] == workspace.pk
    assert "aggregate_full" in body["detail"]


def test_what_is_gone_is_not_handed_out_again(
    as_ci: APIClient, ci: User, snapshot: Snapshot
) -> None:
    ask(as_ci)
    workspace = become(Workspace.State.READY)
    workspace_retire(by=ci, workspace=workspace)
    become(Workspace.State.TRASHED)

    response = ask(as_ci)

    assert (response.status_code, response.json()["code"]) == (409, "workspace_retired")


# --- the same request again


@pytest.mark.parametrize(
    "changed",
    [
        {"lease": 901},
        {"purpose": "build"},
        {"name": "other"},
        {"reconcile": True},
        {"heartbeat_seconds": 60},
    ],
)
def test_a_key_with_another_body_is_refused(
    as_ci: APIClient, snapshot: Snapshot, changed: dict[str, Any]
) -> None:
    assert ask(as_ci).status_code == 202

    response = ask(as_ci, **changed)

    assert (response.status_code, response.json()["code"]) == (
        409,
        "request_key_reused",
    )
    assert Workspace.objects.count() == 1


def test_what_says_the_same_is_the_same(as_ci: APIClient, snapshot: Snapshot) -> None:
    first = ask(as_ci).json()["id"]

    assert ask(as_ci, template=snapshot.template_id, reconcile=False).json()["id"] == (
        first
    )


def test_a_refused_request_leaves_its_key_free(
    as_ci: APIClient, ci: User, snapshot: Snapshot
) -> None:
    ci.max_workspaces = 0
    ci.save()
    assert ask(as_ci).json()["code"] == "quota_workspaces"
    ci.max_workspaces = 1
    ci.save()

    assert ask(as_ci).status_code == 202


def test_a_key_is_kept_for_a_week(as_ci: APIClient, snapshot: Snapshot) -> None:
    first = ask(as_ci).json()["id"]
    old_enough = timezone.now() - KEYS_KEPT
    Workspace.objects.update(created_at=old_enough + dt.timedelta(minutes=5))
    assert ask(as_ci).json()["id"] == first

    Workspace.objects.update(created_at=old_enough)

    assert ask(as_ci).json()["id"] != first
    assert Workspace.objects.get(pk=first).request_key == ""


# --- what the server supports


def test_a_purpose_that_the_server_lacks_is_refused(
    as_ci: APIClient, snapshot: Snapshot
) -> None:
    server = snapshot.template.site.perforce_server
    abilities = ServerAbilities.objects.create(
        server=server, client_types=["writeable"], checked_at=timezone.now()
    )

    response = ask(as_ci)

    assert (response.status_code, response.json()["code"]) == (
        409,
        "purpose_not_supported",
    )
    assert "client.readonly.dir" in response.json()["detail"]
    assert not Workspace.objects.exists()
    assert ask(as_ci, purpose="build").status_code == 202
    abilities.client_types += ["readonly"]
    abilities.save()
    other = as_ci.post(WORKSPACES, {**ASKED, "purpose": "ci"})
    assert other.status_code == 202


@pytest.mark.parametrize(
    ("types", "wanted", "expected"),
    [
        (["writeable", "partitioned-jnl"], True, "partitioned-jnl"),
        (["writeable", "partitioned-jnl"], False, ""),
        (["writeable"], True, ""),
    ],
)
def test_development_gets_a_partition_where_that_is_wished_and_there(
    as_ci: APIClient,
    snapshot: Snapshot,
    types: list[str],
    wanted: bool,
    expected: str,
) -> None:
    server = snapshot.template.site.perforce_server
    server.partitioned_development = wanted
    server.save()
    ServerAbilities.objects.create(
        server=server, client_types=types, checked_at=timezone.now()
    )

    assert ask(as_ci, purpose="development").json()["client_type"] == expected


# --- a job that says that it lives


def hours_later(workspace: Workspace, hours: float) -> None:
    """Let everything about a workspace have happened so much earlier."""
    shift = dt.timedelta(hours=hours)
    workspace.refresh_from_db()
    for field in ("created_at", "ready_at", "failed_at", "heartbeat_at"):
        value = getattr(workspace, field)
        setattr(workspace, field, value and value - shift)
    workspace.save()


@pytest.fixture
def watched(as_ci: APIClient, snapshot: Snapshot) -> Workspace:
    """A ready workspace of CI whose job is to be heard every two minutes."""
    assert ask(as_ci, heartbeat_seconds=120, lease=36000).status_code == 202
    return become(Workspace.State.READY)


def test_a_heartbeat_says_by_when_the_next_is_due(
    as_ci: APIClient, watched: Workspace
) -> None:
    hours_later(watched, 0.01)

    response = as_ci.post(f"{WORKSPACES}/{watched.pk}/heartbeat")

    assert response.status_code == 200
    due_at = dt.datetime.fromisoformat(response.json()["lease"]["heartbeat_due_at"])
    left = due_at - timezone.now()
    assert dt.timedelta(seconds=100) < left <= dt.timedelta(seconds=120)
    assert "without a heartbeat" in response.json()["lease"]["sentence"]


def test_a_silent_job_loses_its_workspace(watched: Workspace) -> None:
    hours_later(watched, 0.1)

    sweep_leases(timestamp=0)

    watched.refresh_from_db()
    assert watched.state == Workspace.State.RETIRING
    assert watched.heartbeat_seconds is None
    assert Event.objects.get(kind="heartbeat_missed").workspace == watched


def test_no_heartbeat_is_due_while_it_is_being_made(
    as_ci: APIClient, snapshot: Snapshot
) -> None:
    lease = ask(as_ci, heartbeat_seconds=120).json()["lease"]

    assert lease["heartbeat_due_at"] is None
    assert "says nothing" not in lease["sentence"]


def test_of_one_that_failed_silence_counts_from_then(
    as_ci: APIClient, snapshot: Snapshot
) -> None:
    """However long it waited for a slot, there is time to try again."""
    ask(as_ci, heartbeat_seconds=120, lease=36000)
    hours_later(Workspace.objects.get(), 0.1)
    failed = become(Workspace.State.FAILED, code="aggregate_full")

    sweep_leases(timestamp=0)

    failed.refresh_from_db()
    assert failed.state == Workspace.State.FAILED
    due_at = as_ci.get(f"{WORKSPACES}/{failed.pk}").json()["lease"]["heartbeat_due_at"]
    left = dt.datetime.fromisoformat(due_at) - timezone.now()
    assert dt.timedelta(seconds=60) < left <= dt.timedelta(seconds=120)

    hours_later(failed, 0.1)
    sweep_leases(timestamp=0)

    failed.refresh_from_db()
    assert failed.state == Workspace.State.RETIRING


def test_a_job_that_is_heard_keeps_it(as_ci: APIClient, watched: Workspace) -> None:
    hours_later(watched, 0.1)
    as_ci.post(f"{WORKSPACES}/{watched.pk}/heartbeat")

    sweep_leases(timestamp=0)

    watched.refresh_from_db()
    assert watched.state == Workspace.State.READY


def test_what_is_kept_needs_no_heartbeat(watched: Workspace, admin: User) -> None:
    workspace_keep(by=admin, workspace=watched, reason="To look at it.")
    hours_later(watched, 0.1)

    sweep_leases(timestamp=0)

    watched.refresh_from_db()
    assert watched.state == Workspace.State.READY


def test_a_heartbeat_for_nothing_is_refused(
    as_ci: APIClient, ci: User, snapshot: Snapshot
) -> None:
    ask(as_ci)
    workspace = become(Workspace.State.READY)
    address = f"{WORKSPACES}/{workspace.pk}/heartbeat"

    def answer() -> tuple[int, str]:
        response = as_ci.post(address)
        return response.status_code, response.json()["code"]

    assert answer() == (409, "no_heartbeat")
    workspace_retire(by=ci, workspace=workspace)
    assert answer() == (409, "workspace_busy")
    become(Workspace.State.TRASHED)
    assert answer() == (409, "workspace_retired")


@pytest.mark.parametrize("seconds", [0, 29, 86401, -1, "60", 1.5])
def test_a_malformed_heartbeat_is_refused(
    as_ci: APIClient, snapshot: Snapshot, seconds: Any
) -> None:
    response = ask(as_ci, heartbeat_seconds=seconds)

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["heartbeat_seconds"]
