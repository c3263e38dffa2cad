"""/api/v1/abandoned: the list, asking owners, retiring in bulk."""

from __future__ import annotations

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.notify.models import Notification
from provisioner.workspaces.models import Workspace
from tests.support.abandoned import abandon

ABANDONED = "/api/v1/abandoned"


def test_it_says_why_and_what_it_would_free(
    api_as_admin: APIClient, ready: Workspace
) -> None:
    abandon(ready, days=41, submitted=41)
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=5_000)

    body = api_as_admin.get(ABANDONED).json()

    assert (body["after_days"], body["unseen"], body["frees_bytes"]) == (28, 0, 5_000)
    [found] = body["workspaces"]
    assert (found["workspace"], found["name"]) == (ready.pk, "hers")
    assert found["idle_days"] == 41
    assert found["frees_bytes"] == 5_000
    assert (found["snapshot"], found["is_last_clone"]) == (ready.snapshot.name, True)
    sentences = {sign["kind"]: sign["sentence"] for sign in found["signals"]}
    assert sentences["accessed"] == "no Perforce command for 41 days"
    assert sentences["submitted"] == "no submitted change for 41 days"
    assert found["lease"]["sentence"]


def test_what_is_used_is_not_listed(api_as_admin: APIClient, ready: Workspace) -> None:
    abandon(ready, days=41, submitted=3)

    assert api_as_admin.get(ABANDONED).json()["workspaces"] == []


def test_owners_are_asked_once_a_day(api_as_admin: APIClient, ready: Workspace) -> None:
    User.objects.filter(pk=ready.owner_id).update(email="alice@example.com")
    abandon(ready)

    for _ in range(2):
        response = api_as_admin.post(f"{ABANDONED}/notify", {"workspaces": [ready.pk]})
        assert response.status_code == 200

    [result] = response.json()["results"]
    assert (result["outcome"], result["operation"]) == ("notify", None)
    notice = Notification.objects.get(kind="abandoned")
    assert "no Perforce command for 41 days" in notice.data["reasons"]


def test_who_was_sent_a_mail_today_is_asked_no_second_time(
    api_as_admin: APIClient, ready: Workspace
) -> None:
    User.objects.filter(pk=ready.owner_id).update(email="alice@example.com")
    abandon(ready)
    chosen = {"workspaces": [ready.pk]}
    api_as_admin.post(f"{ABANDONED}/notify", chosen)
    Notification.objects.filter(kind="abandoned").update(claimed_at=timezone.now())

    response = api_as_admin.post(f"{ABANDONED}/notify", chosen)

    [result] = response.json()["results"]
    assert (result["outcome"], result["code"]) == ("refused", "asked_already")
    assert "No second mail is sent" in result["sentence"]
    assert ready.events.filter(kind="owner_asked").count() == 1


def test_a_preview_does_nothing(api_as_admin: APIClient, ready: Workspace) -> None:
    abandon(ready)

    response = api_as_admin.post(
        f"{ABANDONED}/retire", {"workspaces": [ready.pk], "preview": True}
    )

    [result] = response.json()["results"]
    assert (result["outcome"], result["operation"]) == ("retire", None)
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


def test_each_is_answered_for_itself(api_as_admin: APIClient, ready: Workspace) -> None:
    abandon(ready)

    response = api_as_admin.post(
        f"{ABANDONED}/retire", {"workspaces": [ready.pk, ready.pk]}
    )

    assert response.status_code == 200
    [result] = response.json()["results"]
    assert result["outcome"] == "retire"
    ready.refresh_from_db()
    assert ready.state == Workspace.State.RETIRING
    operation = ready.operations.get(pk=result["operation"])
    assert operation.parameters["unsubmitted"] == "rescue"
    listed = api_as_admin.get(ABANDONED).json()
    assert listed["workspaces"] == []
    [line] = listed["under_way"]
    assert (line["workspace"], line["state"]) == (ready.pk, "retiring")
    again = api_as_admin.post(f"{ABANDONED}/retire", {"workspaces": [ready.pk]})
    [result] = again.json()["results"]
    assert (result["outcome"], result["code"]) == ("refused", "workspace_busy")


def test_one_that_was_used_meanwhile_is_left_alone(
    api_as_admin: APIClient, ready: Workspace
) -> None:
    abandon(ready, submitted=1)

    response = api_as_admin.post(f"{ABANDONED}/retire", {"workspaces": [ready.pk]})

    [result] = response.json()["results"]
    assert (result["outcome"], result["code"]) == ("refused", "not_abandoned")
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


@pytest.mark.parametrize(
    "body", [{}, {"workspaces": []}, {"workspaces": [0]}, {"workspaces": [999999]}]
)
def test_no_workspace_is_no_request(api_as_admin: APIClient, body: object) -> None:
    response = api_as_admin.post(f"{ABANDONED}/retire", body)

    assert (response.status_code, response.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("who", "status"), [("alice", 403), ("carol", 403), ("nobody", 401)]
)
def test_it_is_for_administrators(
    request: pytest.FixtureRequest, ready: Workspace, who: str, status: int
) -> None:
    client: APIClient = request.getfixturevalue(f"api_as_{who}")
    abandon(ready)
    chosen = {"workspaces": [ready.pk]}

    answers = {
        client.get(ABANDONED).status_code,
        client.post(f"{ABANDONED}/notify", chosen).status_code,
        client.post(f"{ABANDONED}/retire", chosen).status_code,
    }

    assert answers == {status}
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY
