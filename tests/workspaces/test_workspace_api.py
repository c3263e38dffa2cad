"""/api/v1/workspaces: requesting, reading, retiring, retrying."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.requests import workspace_create

WORKSPACES = "/api/v1/workspaces"


def address(workspace: Workspace, verb: str = "") -> str:
    return f"{WORKSPACES}/{workspace.pk}{verb}"


# --- asking for one


def test_a_request_is_answered_at_once_with_the_resource(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    response = api_as_alice.post(WORKSPACES, {"template": snapshot.template_id})

    assert response.status_code == 202
    body = response.json()
    assert response["Location"] == body["links"]["self"]
    assert body["links"]["self"].endswith(f"{WORKSPACES}/{body['id']}")
    assert body["name"] == "alice-main"
    assert body["state"] == "provisioning"
    assert body["owner"] == "alice"
    assert body["purpose"] == "development"
    assert body["template"] == "main"
    assert body["snapshot"] == {
        "id": snapshot.pk,
        "name": snapshot.name,
        "change": snapshot.change,
        "withdrawn_at": None,
        "withdraw_reason": "",
    }
    assert body["change"] == snapshot.change
    assert body["path"] == "/nonexistent/cloneyard/w-alice-main"
    assert body["client"].startswith("cy-alice-main-w")
    assert body["p4port"] == snapshot.template.site.perforce_server.p4port
    assert (body["ready_at"], body["retired_at"]) == (None, None)
    operation = body["operation"]
    assert (operation["kind"], operation["state"]) == ("provision", "running")
    assert operation["steps_done"] == 0
    assert [step["title"] for step in operation["current_steps"]] == [
        "Check read access"
    ]


def test_everything_can_be_said(api_as_alice: APIClient, template: Template) -> None:
    older = SnapshotFactory.create(template=template, change=90)
    SnapshotFactory.create(template=template, change=100)

    response = api_as_alice.post(
        WORKSPACES,
        {
            "template": "main",
            "site": template.site.name,
            "name": "fix-it",
            "purpose": "development",
            "snapshot": older.name,
            "reconcile": True,
        },
    )

    assert response.status_code == 202
    assert response.json()["change"] == 90
    workspace = Workspace.objects.get(name="fix-it")
    assert workspace.snapshot == older
    assert workspace.wants_reconcile


def test_a_build_only_workspace_has_no_client(ci: User, snapshot: Snapshot) -> None:
    response = api_of(ci).post(
        WORKSPACES,
        {
            "template": "main",
            "snapshot": snapshot.pk,
            "name": "build-1",
            "purpose": "build",
        },
    )

    assert response.status_code == 202
    assert response.json()["client"] == ""


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "template"),
        ({"template": None}, "template"),
        ({"template": True}, "template"),
        ({"template": 0}, "template"),
        ({"template": 1.5}, "template"),
        ({"template": ""}, "template"),
        ({"template": "\0"}, "template"),
        ({"template": ["main"]}, "template"),
        ({"template": "main", "name": "No Name"}, "name"),
        ({"template": "main", "name": "a" * 41}, "name"),
        ({"template": "main", "name": ""}, "name"),
        ({"template": "main", "name": "x\n"}, "name"),
        ({"template": "main", "purpose": "fun"}, "purpose"),
        ({"template": "main", "snapshot": -1}, "snapshot"),
        ({"template": "main", "reconcile": "perhaps"}, "reconcile"),
        ({"template": "main", "site": "\0"}, "site"),
    ],
)
def test_a_malformed_request_names_its_field(
    api_as_alice: APIClient, snapshot: Snapshot, asked: dict[str, Any], field: str
) -> None:
    response = api_as_alice.post(WORKSPACES, asked)

    assert response.status_code == 400
    body = response.json()
    assert body["code"] == "invalid"
    assert list(body["fields"]) == [field]
    assert body["detail"].startswith(f"{field}: ")
    assert not Workspace.objects.exists()


def test_half_a_character_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    body = '{"template": "\\ud800"}'

    response = api_as_alice.generic("POST", WORKSPACES, body, "application/json")

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["template"]


@pytest.mark.parametrize(
    "asked",
    [
        {"template": "no-such"},
        {"template": 2**70},
        {"template": "main", "site": "nowhere"},
        {"template": "main", "snapshot": "no-such"},
        {"template": "main", "snapshot": 2**70},
    ],
)
def test_what_is_not_there_cannot_be_cloned(
    api_as_alice: APIClient, snapshot: Snapshot, asked: dict[str, Any]
) -> None:
    response = api_as_alice.post(WORKSPACES, asked)

    assert response.status_code == 400
    assert response.json()["code"] == "invalid"
    assert response.json()["detail"].startswith("There is no ")


def test_another_templates_snapshot_is_not_there(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    other = SnapshotFactory.create()

    response = api_as_alice.post(WORKSPACES, {"template": "main", "snapshot": other.pk})

    assert response.status_code == 400


def test_a_name_that_two_sites_have_asks_for_the_site(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    TemplateFactory.create(name="main")

    response = api_as_alice.post(WORKSPACES, {"template": "main"})

    assert response.status_code == 400
    assert "Name its site." in response.json()["detail"]
    with_site = {"template": "main", "site": snapshot.template.site.name}
    assert api_as_alice.post(WORKSPACES, with_site).status_code == 202


def test_a_taken_name_is_refused(api_as_carol: APIClient, workspace: Workspace) -> None:
    response = api_as_carol.post(WORKSPACES, {"template": "main", "name": "hers"})

    assert response.status_code == 409
    assert response.json()["code"] == "name_taken"


def test_a_template_without_snapshot_is_refused(
    api_as_alice: APIClient, template: Template
) -> None:
    response = api_as_alice.post(WORKSPACES, {"template": "main"})

    assert response.status_code == 409
    assert response.json() == {
        "detail": "The template “main” has no published snapshot yet. Build it first, "
        "or wait for its build to end.",
        "code": "no_snapshot",
        "request_id": response["X-Request-ID"],
    }


def test_a_deleted_snapshot_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    gone = SnapshotFactory.create(template=snapshot.template, deleted_at=timezone.now())

    response = api_as_alice.post(WORKSPACES, {"template": "main", "snapshot": gone.pk})

    assert response.status_code == 409
    assert response.json()["code"] == "snapshot_gone"


def test_an_account_without_uid_is_refused(snapshot: Snapshot) -> None:
    visitor = UserFactory.create(uid=None, gid=None)

    response = api_of(visitor).post(WORKSPACES, {"template": "main"})

    assert response.status_code == 409
    assert response.json()["code"] == "account_incomplete"


def test_nobody_gets_no_workspace(api_as_nobody: APIClient, snapshot: Snapshot) -> None:
    response = api_as_nobody.post(WORKSPACES, {"template": "main"})

    assert response.status_code == 401
    assert not Workspace.objects.exists()


# --- the same request again


def test_the_same_key_answers_with_the_same_workspace(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    asked = {"template": "main", "purpose": "build"}

    first = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="job 17")
    again = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="job 17")
    other = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="job 18")

    assert first.status_code == again.status_code == other.status_code == 202
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert Operation.objects.count() == 2


def test_the_same_key_answers_also_when_its_snapshot_is_gone(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    asked = {"template": "main", "snapshot": snapshot.pk}
    first = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="1").json()
    Snapshot.objects.update(deleted_at=timezone.now())

    again = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="1")

    assert again.status_code == 202
    assert again.json()["id"] == first["id"]


def test_a_key_is_its_persons_own(
    api_as_alice: APIClient, api_as_carol: APIClient, snapshot: Snapshot
) -> None:
    asked = {"template": "main"}

    hers = api_as_alice.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="1").json()
    other = api_as_carol.post(WORKSPACES, asked, HTTP_IDEMPOTENCY_KEY="1").json()

    assert hers["id"] != other["id"]
    assert other["owner"] == "carol"


def test_a_key_used_for_something_else_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    api_as_alice.post(WORKSPACES, {"template": "main"}, HTTP_IDEMPOTENCY_KEY="1")

    response = api_as_alice.post(
        WORKSPACES, {"template": "main", "purpose": "build"}, HTTP_IDEMPOTENCY_KEY="1"
    )

    assert response.status_code == 409
    assert response.json()["code"] == "request_key_reused"


@pytest.mark.parametrize("key", ["", "k" * 201, "smörgås", "tab\there"])
def test_a_malformed_key_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot, key: str
) -> None:
    response = api_as_alice.post(
        WORKSPACES, {"template": "main"}, HTTP_IDEMPOTENCY_KEY=key
    )

    assert response.status_code == 400
    assert response.json()["code"] == "invalid"
    assert not Workspace.objects.exists()


# --- looking


def test_the_owner_and_administrators_see_a_workspace(
    api_as_alice: APIClient, api_as_admin: APIClient, ready: Workspace
) -> None:
    for client in (api_as_alice, api_as_admin):
        body = client.get(address(ready)).json()
        assert body["state"] == "ready"
        assert body["ready_at"] is not None
        assert body["operation"]["state"] == "succeeded"
        assert body["operation"]["current_steps"] == []
        (row,) = client.get(WORKSPACES).json()["results"]
        assert row == body


def test_a_stranger_sees_nothing(api_as_carol: APIClient, workspace: Workspace) -> None:
    assert api_as_carol.get(WORKSPACES).json()["results"] == []
    same = {"X-Request-ID": "same"}
    response = api_as_carol.get(address(workspace), headers=same)
    assert response.status_code == 404
    missing = api_as_carol.get(f"{WORKSPACES}/999999", headers=same)
    assert response.json() == missing.json()


def test_nobody_sees_nothing(api_as_nobody: APIClient, workspace: Workspace) -> None:
    assert api_as_nobody.get(WORKSPACES).status_code == 401
    assert api_as_nobody.get(address(workspace)).status_code == 401


def test_a_failure_says_why(api_as_alice: APIClient, failed: Workspace) -> None:
    body = api_as_alice.get(address(failed)).json()

    assert body["state"] == "failed"
    assert body["status_code"] == "aggregate_full"
    assert body["status_message"] == "The aggregate is full."
    (step,) = body["operation"]["current_steps"]
    assert step["name"] == "clone"
    assert step["error_message"] == "The aggregate is full."


def test_the_list_is_filtered(
    api_as_admin: APIClient, workspace: Workspace, carol: User
) -> None:
    theirs = workspace_create(by=carol, template=workspace.template)

    def names(**query: Any) -> list[str]:
        response = api_as_admin.get(WORKSPACES, query)
        return [row["name"] for row in response.json()["results"]]

    assert names() == [theirs.name, "hers"]
    assert names(state="provisioning") == [theirs.name, "hers"]
    assert names(state="ready") == []
    assert names(name="hers") == ["hers"]
    assert names(name="hers", site=workspace.site.name) == ["hers"]
    assert names(site="no-such") == []
    assert names(owner="carol") == [theirs.name]
    assert names(template="main", owner="alice") == ["hers"]
    assert names(template=workspace.template_id) == [theirs.name, "hers"]
    assert names(template="no-such") == []


@pytest.mark.parametrize(
    "query",
    [
        {"state": "asleep"},
        {"state": ""},
        {"name": "\0"},
        {"site": "\0"},
        {"owner": "\0"},
        {"template": "\0"},
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "-1"},
        {"limit": "many"},
        {"limit": "9" * 5000},
        {"cursor": "ü"},
        {"cursor": "cD1ub3QtYS1udW1iZXI="},  # p=not-a-number
        {"cursor": "cD0lMDA="},  # p=%00
    ],
)
def test_a_malformed_query_is_refused(
    api_as_alice: APIClient, workspace: Workspace, query: dict[str, str]
) -> None:
    response = api_as_alice.get(WORKSPACES, query)

    assert response.status_code == 400
    assert response.json()["code"] == "invalid"


def test_long_lists_come_in_pages(api_as_alice: APIClient, snapshot: Snapshot) -> None:
    for number in range(5):
        api_as_alice.post(WORKSPACES, {"template": "main", "name": f"w{number}"})

    seen, where = [], f"{WORKSPACES}?limit=2"
    while where:
        page = api_as_alice.get(where).json()
        seen.append([row["name"] for row in page["results"]])
        where = page["next"]

    assert seen == [["w4", "w3"], ["w2", "w1"], ["w0"]]


def test_the_list_is_bounded_in_queries(
    api_as_alice: APIClient,
    snapshot: Snapshot,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        api_as_alice.post(WORKSPACES, {"template": "main", "name": f"w{number}"})

    # The token, its owner's other tokens; the page, its operations, their steps.
    with django_assert_max_num_queries(7):
        body = api_as_alice.get(WORKSPACES).json()

    assert len(body["results"]) == 5


# --- retiring


@pytest.mark.parametrize("who", ["api_as_alice", "api_as_admin"])
def test_the_owner_or_an_administrator_retires(
    request: pytest.FixtureRequest, ready: Workspace, who: str
) -> None:
    response = request.getfixturevalue(who).delete(address(ready))

    assert response.status_code == 202
    body = response.json()
    assert body["state"] == "retiring"
    assert body["operation"]["kind"] == "retire"
    operation = ready.operations.first()
    assert operation is not None
    assert operation.parameters["unsubmitted"] == "refuse"
    assert f"api_as_{operation.requested_by}" == who


def test_unsubmitted_work_is_discarded_on_request(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    api_as_alice.delete(f"{address(ready)}?unsubmitted=discard")

    operation = ready.operations.first()
    assert operation is not None
    assert operation.parameters["unsubmitted"] == "discard"


def test_retiring_again_is_the_same_retirement(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    first = api_as_alice.delete(address(ready)).json()
    again = api_as_alice.delete(address(ready))

    assert again.status_code == 202
    assert again.json()["operation"]["id"] == first["operation"]["id"]


def test_a_stranger_retires_nothing(api_as_carol: APIClient, ready: Workspace) -> None:
    assert api_as_carol.delete(address(ready)).status_code == 404
    assert (
        api_as_carol.delete(f"{address(ready)}?unsubmitted=discard").status_code == 404
    )
    ready.refresh_from_db()
    assert ready.state == "ready"


def test_nobody_retires_nothing(api_as_nobody: APIClient, ready: Workspace) -> None:
    assert api_as_nobody.delete(address(ready)).status_code == 401


def test_a_retired_workspace_is_not_retired_again(
    api_as_alice: APIClient, retired: Workspace
) -> None:
    response = api_as_alice.delete(address(retired))

    assert response.status_code == 409
    assert response.json() == {
        "detail": "The workspace “hers” was retired.",
        "code": "workspace_retired",
        "request_id": response["X-Request-ID"],
    }


@pytest.mark.parametrize(
    "query", ["unsubmitted=perhaps", "unsubmitted=", "purge=maybe", "wait=x"]
)
def test_a_malformed_retirement_is_refused(
    api_as_alice: APIClient, ready: Workspace, query: str
) -> None:
    assert api_as_alice.delete(f"{address(ready)}?{query}").status_code == 400
    ready.refresh_from_db()
    assert ready.state == "ready"


# --- trying again


@pytest.mark.parametrize("who", ["api_as_alice", "api_as_admin"])
def test_a_failed_workspace_is_tried_again(
    request: pytest.FixtureRequest, failed: Workspace, who: str
) -> None:
    response = request.getfixturevalue(who).post(address(failed, "/retry"))

    assert response.status_code == 202
    body = response.json()
    assert body["state"] == "provisioning"
    assert body["operation"]["state"] == "running"
    assert response["Location"] == body["links"]["self"]


def test_a_stranger_tries_nothing_again(
    api_as_carol: APIClient, failed: Workspace
) -> None:
    assert api_as_carol.post(address(failed, "/retry")).status_code == 404


def test_nobody_tries_nothing_again(
    api_as_nobody: APIClient, failed: Workspace
) -> None:
    assert api_as_nobody.post(address(failed, "/retry")).status_code == 401


def test_what_is_under_way_is_not_tried_again(
    api_as_alice: APIClient, workspace: Workspace
) -> None:
    response = api_as_alice.post(address(workspace, "/retry"))

    assert response.status_code == 409
    assert response.json()["code"] == "workspace_busy"


def test_what_is_ready_is_not_tried_again(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    response = api_as_alice.post(address(ready, "/retry"))

    assert response.status_code == 409
    assert response.json()["code"] == "nothing_to_retry"


def test_a_malformed_wait_tries_nothing_again(
    api_as_alice: APIClient, failed: Workspace
) -> None:
    assert api_as_alice.post(address(failed, "/retry") + "?wait=x").status_code == 400
    failed.refresh_from_db()
    assert failed.state == "failed"
