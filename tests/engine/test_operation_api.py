"""GET /api/v1/operations."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.models import Workspace
from tests.support.requests import workspace_create

OPERATIONS = "/api/v1/operations"


@pytest.fixture
def provision(workspace: Workspace) -> Operation:
    return workspace.operations.get()


@pytest.fixture
def build(template: Template, admin: User) -> Operation:
    return template_build(by=admin, template=template)


def test_the_owner_and_administrators_follow_the_steps(
    api_as_alice: APIClient, api_as_admin: APIClient, provision: Operation
) -> None:
    step = provision.steps.get(name="clone")
    engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    engine_states.record_progress(step, {"done": 1, "total": 2, "unit": "things"})

    for client in (api_as_alice, api_as_admin):
        body = client.get(f"{OPERATIONS}/{provision.pk}").json()
        assert body["kind"] == "provision"
        assert body["workspace"] == provision.subject.row.pk
        assert body["template"] is None
        assert body["requested_by"] == "alice"
        clone, export = body["steps"][1:3]
        assert clone["title"] == "Clone the snapshot"
        assert (clone["state"], clone["attempt"]) == ("running", 1)
        assert clone["progress"] == {"done": 1, "total": 2, "unit": "things"}
        assert clone["started_at"] is not None
        assert clone["seconds"] is None
        assert (export["state"], export["started_at"]) == ("waiting", None)


def test_a_step_that_ended_says_how_long_it_took(
    api_as_alice: APIClient, provision: Operation
) -> None:
    step = provision.steps.get(name="clone")
    engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    engine_states.finish_step(step, result=None)

    body = api_as_alice.get(f"{OPERATIONS}/{provision.pk}").json()

    assert body["steps"][1]["state"] == "done"
    assert body["steps"][1]["seconds"] >= 0


def test_a_stranger_sees_builds_alone(
    api_as_carol: APIClient, provision: Operation, build: Operation
) -> None:
    assert api_as_carol.get(f"{OPERATIONS}/{provision.pk}").status_code == 404
    assert api_as_carol.get(f"{OPERATIONS}/{build.pk}").status_code == 200
    (row,) = api_as_carol.get(OPERATIONS).json()["results"]
    assert row["id"] == build.pk


def test_nobody_sees_operations(api_as_nobody: APIClient, provision: Operation) -> None:
    assert api_as_nobody.get(OPERATIONS).status_code == 401
    assert api_as_nobody.get(f"{OPERATIONS}/{provision.pk}").status_code == 401


def test_operations_are_filtered(
    api_as_alice: APIClient, provision: Operation, build: Operation
) -> None:
    def ids(**query: str | int) -> list[int]:
        return [
            row["id"] for row in api_as_alice.get(OPERATIONS, query).json()["results"]
        ]

    assert sorted(ids()) == sorted([provision.pk, build.pk])
    assert ids(workspace=provision.subject.row.pk) == [provision.pk]
    assert ids(template=build.subject.row.pk) == [build.pk]
    assert ids(workspace=999999) == []
    assert ids(workspace=2**70) == []


@pytest.mark.parametrize("query", [{"workspace": "x"}, {"template": "-1"}])
def test_a_malformed_filter_is_refused(
    api_as_alice: APIClient, query: dict[str, str]
) -> None:
    response = api_as_alice.get(OPERATIONS, query)

    assert response.status_code == 400
    assert list(response.json()["fields"]) == list(query)


def test_the_list_is_bounded_in_queries(
    api_as_alice: APIClient,
    alice: User,
    workspace: Workspace,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(4):
        workspace_create(by=alice, template=workspace.template, name=f"w{number}")

    # The token, the time, its owner's others, its last use, its requests; the page, its
    # steps.
    with django_assert_max_num_queries(7):
        body = api_as_alice.get(OPERATIONS).json()

    assert len(body["results"]) == 5
