"""What a token is for, and that it is for nothing else."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import ApiToken, TokenUse, User
from provisioner.accounts.refusals import OutOfScope
from provisioner.accounts.tokens import token_create
from provisioner.bisect.models import Bisection
from provisioner.catalog.actions.templates import template_pin, template_unpin
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.leases import workspace_keep
from provisioner.leases.models import LeasePolicy
from provisioner.lib.refusals import NotAllowed
from provisioner.notify.actions.subscriptions import (
    template_subscribe,
    template_unsubscribe,
)
from provisioner.notify.models import Subscription
from provisioner.transfer.actions import workspace_transfer
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.api_clients import JsonClient
from tests.support.factories import SnapshotFactory
from tests.support.requests import workspace_create
from tests.support.workspaces import end, running_of

TOKENS = "/api/v1/tokens"
WORKSPACES = "/api/v1/workspaces"
ASKED = {"template": "main", "purpose": "build"}
HOUR = 3600


def with_token(user: User, **scope: Any) -> APIClient:
    client = JsonClient()
    _, secret = token_create(by=user, **scope)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def code_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")


def got_ready(client: APIClient, **asked: Any) -> Workspace:
    """Return what somebody asked for, ready to work in."""
    answer = client.post(WORKSPACES, {**ASKED, "purpose": "development", **asked})
    assert answer.status_code == 202, answer.json()
    workspace = Workspace.objects.get(pk=answer.json()["id"])
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


def seconds_left(response: Any) -> float:
    """Return how long the lease goes on of the workspace in an answer."""
    ends_at = dt.datetime.fromisoformat(response.json()["lease"]["ends_at"])
    return (ends_at - timezone.now()).total_seconds()


# --- made with a scope


def test_a_token_says_what_it_is_for(alice: User, snapshot: Snapshot) -> None:
    client = JsonClient()
    client.force_login(alice)

    response = client.post(
        TOKENS,
        {
            "name": "nightly",
            "days": 7,
            "templates": ["main"],
            "purposes": ["build", "ci"],
            "max_lease_seconds": 3600,
            "max_workspaces": 2,
        },
    )

    assert response.status_code == 201
    body = response.json()
    assert body["templates"] == [snapshot.template_id]
    assert body["purposes"] == ["build", "ci"]
    assert (body["max_lease_seconds"], body["max_workspaces"]) == (3600, 2)
    lives = dt.datetime.fromisoformat(body["expires_at"]) - timezone.now()
    # The database's clock decides, which may be a little ahead of ours.
    assert abs(lives - dt.timedelta(days=7)) < dt.timedelta(minutes=1)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
        ({"templates": [True]}, "templates.0"),
        ({"templates": "main"}, "templates"),
        ({"purposes": ["fun"]}, "purposes.0"),
        ({"max_lease_seconds": 0}, "max_lease_seconds"),
        ({"max_workspaces": 0}, "max_workspaces"),
    ],
)
def test_a_malformed_scope_names_its_field(
    alice: User, snapshot: Snapshot, asked: dict[str, Any], field: str
) -> None:
    client = JsonClient()
    client.force_login(alice)

    response = client.post(TOKENS, asked)

    assert response.status_code == 400
    assert [name.split(".")[0] for name in response.json()["fields"]] == [
        field.split(".")[0]
    ]
    assert not ApiToken.objects.exists()


def test_a_template_that_is_not_there_is_refused(alice: User) -> None:
    client = JsonClient()
    client.force_login(alice)

    assert code_of(client.post(TOKENS, {"templates": [7]})) == (400, "invalid")


# --- what it may get


def test_it_gets_only_what_it_is_for(ci: User, snapshot: Snapshot) -> None:
    other = SnapshotFactory.create().template
    client = with_token(ci, template_ids=[snapshot.template_id], purposes=["build"])

    assert client.post(WORKSPACES, ASKED).status_code == 202
    refused = client.post(WORKSPACES, {"template": "main", "purpose": "development"})
    assert code_of(refused) == (403, "token_scope")
    assert "development" in refused.json()["detail"]
    # It sees no other template, so there is none.
    assert code_of(client.post(WORKSPACES, {**ASKED, "template": other.pk})) == (
        400,
        "invalid",
    )
    assert Workspace.objects.count() == 1


def test_the_scope_holds_whoever_calls(ci: User, snapshot: Snapshot) -> None:
    other = SnapshotFactory.create().template
    token, _ = token_create(by=ci, template_ids=[snapshot.template_id])
    ci.token = token

    with pytest.raises(OutOfScope):
        workspace_create(by=ci, template=other, purpose="build")


def test_a_lease_reaches_as_far_as_the_token_lets_it(
    ci: User, snapshot: Snapshot
) -> None:
    client = with_token(ci, max_lease_seconds=600)
    began = timezone.now()

    usual = client.post(WORKSPACES, ASKED).json()
    longer = client.post(WORKSPACES, {**ASKED, "lease": 601})

    ends_at = dt.datetime.fromisoformat(usual["lease"]["ends_at"])
    assert ends_at - began < dt.timedelta(seconds=660)
    assert code_of(longer) == (409, "lease_too_long")
    there = f"{WORKSPACES}/{usual['id']}"
    extended = client.post(f"{there}/extend", {"seconds": 7200})
    assert code_of(extended) == (409, "lease_too_long")
    assert code_of(client.post(f"{there}/keep", {"reason": "Because."})) == (
        403,
        "not_allowed_to_keep",
    )


def test_no_more_at_a_time_than_the_token_may_have(
    ci: User, snapshot: Snapshot
) -> None:
    client = with_token(ci, max_workspaces=1)
    workspace_create(by=ci, template=snapshot.template, purpose="build")

    first = client.post(WORKSPACES, ASKED, HTTP_IDEMPOTENCY_KEY="1")
    second = client.post(WORKSPACES, ASKED, HTTP_IDEMPOTENCY_KEY="2")
    again = client.post(WORKSPACES, ASKED, HTTP_IDEMPOTENCY_KEY="1")

    assert first.status_code == 202
    assert code_of(second) == (409, "token_workspaces")
    assert second.json()["limits"][0]["allowed"] == 1
    assert again.json()["id"] == first.json()["id"]


@pytest.mark.parametrize("default_seconds", [30 * lease_queries.DAY, None])
def test_it_releases_what_was_kept_for_as_long_as_it_may_have_it(
    alice: User, admin: User, snapshot: Snapshot, default_seconds: int | None
) -> None:
    LeasePolicy.objects.create(purpose="development", default_seconds=default_seconds)
    client = with_token(alice, max_lease_seconds=HOUR)
    kept = got_ready(client)
    workspace_keep(by=admin, workspace=kept, reason="The trade fair")

    response = client.post(f"{WORKSPACES}/{kept.pk}/release")

    assert response.status_code == 200
    assert HOUR - 60 < seconds_left(response) <= HOUR


def test_work_is_transferred_within_its_bounds(alice: User, snapshot: Snapshot) -> None:
    client = with_token(alice, max_lease_seconds=HOUR, max_workspaces=2)
    older = got_ready(client)
    SnapshotFactory.create(template=snapshot.template)

    response = client.post(f"{WORKSPACES}/{older.pk}/transfer")

    assert response.status_code == 202
    assert HOUR - 60 < seconds_left(response) <= HOUR
    there = f"{WORKSPACES}/{response.json()['id']}"
    assert client.get(there).status_code == 200
    again = client.post(f"{WORKSPACES}/{older.pk}/transfer")
    assert again.json()["id"] == response.json()["id"]


def test_what_work_is_brought_from_counts_as_it_does_for_people(
    alice: User, snapshot: Snapshot
) -> None:
    """Both are there until all has arrived, so it takes room for two."""
    client = with_token(alice, max_workspaces=1)
    older = got_ready(client)
    SnapshotFactory.create(template=snapshot.template)

    def refused() -> tuple[int, str]:
        return code_of(client.post(f"{WORKSPACES}/{older.pk}/transfer"))

    assert refused() == (409, "token_workspaces")
    ApiToken.objects.update(max_workspaces=2)
    alice.max_workspaces = 1
    alice.save()
    assert refused() == (409, "quota_workspaces")
    assert Workspace.objects.get() == older


@pytest.mark.parametrize("who", ["alice", "admin"])
def test_where_a_person_transfers_its_work_the_new_one_is_not_its_own(
    alice: User, admin: User, snapshot: Snapshot, who: str
) -> None:
    client = with_token(alice, max_lease_seconds=HOUR, max_workspaces=1)
    older = got_ready(client)
    SnapshotFactory.create(template=snapshot.template)
    person = {"alice": alice, "admin": admin}[who]

    made = workspace_transfer(by=person, workspace=older)

    assert made.expires_at is not None
    assert made.expires_at - timezone.now() > dt.timedelta(days=29)
    assert client.get(f"{WORKSPACES}/{made.pk}").status_code == 404
    again = client.post(f"{WORKSPACES}/{older.pk}/transfer")
    assert code_of(again) == (409, "being_transferred")


# --- and nothing else


def test_it_sees_and_changes_only_what_it_got(alice: User, snapshot: Snapshot) -> None:
    hers = workspace_create(by=alice, template=snapshot.template)
    client = with_token(alice, max_workspaces=5)
    its_own = client.post(WORKSPACES, ASKED).json()["id"]

    listed = client.get(WORKSPACES).json()["results"]

    assert [workspace["id"] for workspace in listed] == [its_own]
    assert client.get(f"{WORKSPACES}/{hers.pk}").status_code == 404
    assert client.delete(f"{WORKSPACES}/{hers.pk}").status_code == 404
    assert client.delete(f"{WORKSPACES}/{its_own}").status_code == 202
    operations = client.get("/api/v1/operations").json()["results"]
    assert {operation["workspace"] for operation in operations} == {its_own}


def test_a_key_does_not_lead_to_what_it_did_not_get(
    alice: User, snapshot: Snapshot
) -> None:
    first = with_token(alice).post(WORKSPACES, ASKED, HTTP_IDEMPOTENCY_KEY="1")
    assert first.status_code == 202

    response = with_token(alice, max_workspaces=1).post(
        WORKSPACES, ASKED, HTTP_IDEMPOTENCY_KEY="1"
    )

    assert code_of(response) == (409, "request_key_reused")


def test_it_administers_nothing(admin: User, alice: User, snapshot: Snapshot) -> None:
    hers = workspace_create(by=alice, template=snapshot.template)
    client = with_token(admin, purposes=["build"])

    assert code_of(client.get("/api/v1/limits")) == (403, "not_allowed")
    assert code_of(client.get(f"{TOKENS}?everybody=true")) == (403, "not_allowed")
    assert client.get(f"{WORKSPACES}/{hers.pk}").status_code == 404
    assert client.get("/api/v1/events").json()["results"] == []


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_the_mails_that_its_person_gets_are_not_for_it(
    alice: User, template: Template, method: str
) -> None:
    template_subscribe(by=alice, template=template)
    client = with_token(alice, max_workspaces=1)

    response = getattr(client, method)(f"/api/v1/templates/{template.pk}/subscription")

    assert code_of(response) == (403, "not_allowed")
    assert Subscription.objects.get().user == alice


def test_what_its_person_is_told_and_has_pinned_is_not_for_it(
    alice: User, template: Template
) -> None:
    template_pin(by=alice, template=template)
    client = with_token(alice, max_workspaces=1)

    assert code_of(client.get("/api/v1/notifications")) == (403, "not_allowed")
    [listed] = client.get("/api/v1/templates").json()["results"]
    assert listed["pinned"] is False


def test_mails_and_pins_are_not_for_it_whoever_calls(
    alice: User, template: Template
) -> None:
    alice.token, _ = token_create(by=alice, max_workspaces=1)

    with pytest.raises(NotAllowed):
        template_subscribe(by=alice, template=template)
    with pytest.raises(NotAllowed):
        template_unsubscribe(by=alice, template=template)
    for change in (template_pin, template_unpin):
        with pytest.raises(NotAllowed):
            change(by=alice, template=template)


def test_it_revokes_itself_and_no_other(alice: User) -> None:
    other, _ = token_create(by=alice)
    client = with_token(alice, max_workspaces=1)
    [itself] = client.get(TOKENS).json()["results"]

    assert client.delete(f"{TOKENS}/{other.token_key}").status_code == 404
    assert client.delete(f"{TOKENS}/{itself['prefix']}").status_code == 204
    assert client.get(TOKENS).status_code == 401


def test_what_a_revoked_token_got_stays(ci: User, snapshot: Snapshot) -> None:
    client = with_token(ci, max_workspaces=1)
    got = client.post(WORKSPACES, ASKED).json()["id"]

    ApiToken.objects.get().delete()

    assert client.get(WORKSPACES).status_code == 401
    assert Workspace.objects.get(pk=got).token is None


# --- how often


def test_a_throttled_token_learns_when_to_retry(
    ci: User, snapshot: Snapshot, settings: Any
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 2
    client = with_token(ci)

    answers = [client.get(WORKSPACES).status_code for _ in range(3)]
    refused = client.get(WORKSPACES)

    assert answers == [200, 200, 429]
    assert refused.json()["code"] == "throttled"
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert with_token(ci).get(WORKSPACES).status_code == 200
    TokenUse.objects.update(ends_at=timezone.now())
    assert client.get(WORKSPACES).status_code == 200


def test_workspaces_are_counted_besides(
    ci: User, snapshot: Snapshot, settings: Any
) -> None:
    settings.API_WORKSPACES_PER_MINUTE = 1
    client = with_token(ci)

    answers = [client.post(WORKSPACES, ASKED).status_code for _ in range(2)]

    assert answers == [202, 429]
    assert client.get(WORKSPACES).status_code == 200
    assert Workspace.objects.count() == 1


def test_what_else_makes_workspaces_is_counted_with_them(
    alice: User, snapshot: Snapshot, settings: Any
) -> None:
    settings.API_WORKSPACES_PER_MINUTE = 1
    client = with_token(alice)
    older = got_ready(client)
    SnapshotFactory.create(template=snapshot.template)

    forward = client.post(f"{WORKSPACES}/{older.pk}/transfer")
    bisection = client.post(
        "/api/v1/bisections", {"template": "main", "good": 1, "bad": 9}
    )

    assert [code_of(forward), code_of(bisection)] == [(429, "throttled")] * 2
    assert Workspace.objects.get() == older
    assert not Bisection.objects.exists()
    assert client.get(f"{WORKSPACES}/{older.pk}").status_code == 200


def test_people_who_signed_in_are_not_counted(alice: User, settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 0
    client = JsonClient()
    client.force_login(alice)

    assert client.get(WORKSPACES).status_code == 200
    assert not TokenUse.objects.exists()
