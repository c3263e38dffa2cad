"""GET /api/v1/events."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from provisioner.audit_log.actions import record_event
from provisioner.audit_log.models import Event
from provisioner.workspaces.models import Workspace

EVENTS = "/api/v1/events"


def kinds(client: APIClient, **query: str | int) -> list[str]:
    return [row["kind"] for row in client.get(EVENTS, query).json()["results"]]


def test_the_owner_sees_the_events_of_their_workspaces(
    api_as_alice: APIClient, workspace: Workspace
) -> None:
    record_event(workspace.template, kind="template_told", message="Told.")
    record_event(None, kind="told", message="Told.")

    assert kinds(api_as_alice) == ["workspace_requested"]
    [row] = api_as_alice.get(EVENTS).json()["results"]
    assert (row["actor"], row["subject"]) == ("alice", "hers")
    assert (row["workspace"], row["subject_kind"]) == (workspace.pk, "workspace")
    assert (row["via"], row["ip"], row["user_agent"]) == (None, None, None)
    assert api_as_alice.get(f"{EVENTS}/{row['id']}").json() == row


def test_administrators_see_all_and_from_where(
    api_as_admin: APIClient, workspace: Workspace
) -> None:
    assert {"workspace_requested", "token_made"} <= set(kinds(api_as_admin))
    [row] = api_as_admin.get(EVENTS, {"kind": "workspace_requested"}).json()["results"]
    assert row["via"]


def test_strangers_see_nothing_of_it(
    api_as_carol: APIClient, api_as_nobody: APIClient, workspace: Workspace
) -> None:
    event = Event.objects.get(kind="workspace_requested")
    assert kinds(api_as_carol) == []
    assert api_as_carol.get(f"{EVENTS}/{event.pk}").status_code == 404
    assert api_as_nobody.get(EVENTS).status_code == 401
    assert api_as_nobody.get(f"{EVENTS}/{event.pk}").status_code == 401


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_changes_it(
    method: str, api_as_admin: APIClient, workspace: Workspace
) -> None:
    event = Event.objects.get(kind="workspace_requested")
    for address in (EVENTS, f"{EVENTS}/{event.pk}"):
        assert getattr(api_as_admin, method)(address).status_code == 405


def test_events_are_filtered(api_as_admin: APIClient, workspace: Workspace) -> None:
    assert kinds(api_as_admin, workspace=workspace.pk) == ["workspace_requested"]
    assert kinds(api_as_admin, workspace=2**62) == []
    assert kinds(api_as_admin, text="clone of", actor="alice") == [
        "workspace_requested"
    ]
    assert kinds(api_as_admin, subject="hers", since="2020-01-01T00:00:00Z")
    assert not kinds(api_as_admin, subject="hers", until="2020-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "query", [{"workspace": "x"}, {"since": "x"}, {"text": "a" * 101}, {"kind": "\0"}]
)
def test_a_malformed_filter_is_refused(
    api_as_alice: APIClient, query: dict[str, str]
) -> None:
    response = api_as_alice.get(EVENTS, query)
    assert response.status_code == 400
    assert list(response.json()["fields"]) == list(query)


def test_the_list_is_bounded_in_queries(
    api_as_alice: APIClient,
    workspace: Workspace,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        record_event(workspace, kind="told", message=f"Told {number}.")
    # The token, the time, its owner's others, its last use, its requests; the page.
    with django_assert_max_num_queries(6):
        assert len(api_as_alice.get(EVENTS).json()["results"]) == 6
