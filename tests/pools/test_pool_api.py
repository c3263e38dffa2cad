"""Warm pools by API, and what a request says that was answered from one."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.pools.models import Pool
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.factories import UserFactory
from tests.support.warm_pools import filled, make_pool

POOLS, WORKSPACES = "/api/v1/pools", "/api/v1/workspaces"
ASKED: dict[str, Any] = {"template": "main", "purpose": "ci", "owner": "ci", "size": 2}


@pytest.fixture
def as_ci(ci: User) -> APIClient:
    return api_of(ci)


def test_a_pool_is_made_filled_changed_and_deleted(
    api_as_admin: APIClient, ci: User, snapshot: Snapshot
) -> None:
    made = api_as_admin.post(POOLS, {**ASKED, "windows": ["sun 00:00-00:01 3"]})

    assert made.status_code == 201
    body = made.json()
    assert made["Location"].endswith(f"{POOLS}/{body['id']}")
    assert (body["template"], body["owner"], body["purpose"]) == ("main", "ci", "ci")
    assert (body["max_age_seconds"], body["idle_seconds"]) == (86400, 172800)
    where = f"{POOLS}/{body['id']}"
    assert (
        api_as_admin.get(POOLS).json()["results"][0] == api_as_admin.get(where).json()
    )
    filled(Pool.objects.get())
    assert api_as_admin.get(where).json()["figures"]["ready"] in (2, 3)

    changed = api_as_admin.patch(
        where, {"size": 5, "windows": [], "idle_seconds": None}
    )

    assert (changed.status_code, changed.json()["size"]) == (200, 5)
    assert changed.json()["idle_seconds"] is None
    assert changed.json()["max_age_seconds"] == 86400
    assert api_as_admin.delete(where).status_code == 204
    assert api_as_admin.get(where).status_code == 404
    kinds = Event.objects.filter(subject_kind="pool").values_list("kind", flat=True)
    assert set(kinds) == {"pool_made", "pool_changed", "pool_deleted"}


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"owner": "nobody"}, 400, "invalid"),
        ({"template": "other"}, 400, "invalid"),
        ({"purpose": "other"}, 400, "invalid"),
        ({"size": 1001}, 400, "invalid"),
        ({"size": "2"}, 400, "invalid"),
        ({"windows": ["always"]}, 400, "invalid"),
        ({"max_age_seconds": 1}, 400, "invalid"),
        ({"owner": "newcomer"}, 409, "account_incomplete"),
    ],
)
def test_what_makes_no_sense_is_refused(
    api_as_admin: APIClient,
    ci: User,
    snapshot: Snapshot,
    changes: dict[str, Any],
    status: int,
    code: str,
) -> None:
    UserFactory.create(username="newcomer", uid=None, gid=None)

    answer = api_as_admin.post(POOLS, {**ASKED, **changes})

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Pool.objects.exists()


def test_one_of_a_kind_is_enough(
    api_as_admin: APIClient, ci: User, snapshot: Snapshot
) -> None:
    api_as_admin.post(POOLS, ASKED)

    answer = api_as_admin.post(POOLS, ASKED)

    assert (answer.status_code, answer.json()["code"]) == (409, "pool_exists")


def test_a_claim_is_answered_at_once_and_says_so(
    as_ci: APIClient, ci: User, snapshot: Snapshot
) -> None:
    filled(make_pool(snapshot.template, ci, size=1))
    asked = {"template": "main", "purpose": "ci", "name": "job"}
    key = {"Idempotency-Key": "pipeline 7"}

    warm = as_ci.post(WORKSPACES, asked, headers=key)

    assert warm.status_code == 201
    body = warm.json()
    assert body["start"]["warm"] is True
    assert body["start"]["cold_because"] is None
    assert body["start"]["seconds_saved"] > 0
    assert "Claimed from a warm pool" in body["start"]["sentence"]
    made_as = Workspace.objects.get().remote_name
    assert body["name"] == "job"
    assert body["path"].endswith(f"/w-{made_as}")
    assert body["client"].startswith(f"cy-{made_as}-")
    assert body["operation"]["state"] == "succeeded"

    again = as_ci.post(WORKSPACES, asked, headers=key)
    assert (again.status_code, again["Idempotency-Replayed"]) == (201, "true")
    assert again.json()["id"] == body["id"]

    cold = as_ci.post(WORKSPACES, {**asked, "name": "next"})
    assert cold.status_code == 202
    assert cold.json()["start"] == {
        "warm": False,
        "cold_because": "pool_empty",
        "seconds_saved": None,
        "sentence": "Created on request. All members of the pool were claimed.",
    }


def test_members_are_in_no_list(
    as_ci: APIClient, api_as_admin: APIClient, ci: User, snapshot: Snapshot
) -> None:
    [member] = filled(make_pool(snapshot.template, ci, size=1))

    for client in (as_ci, api_as_admin):
        assert client.get(WORKSPACES).json()["results"] == []
        assert client.get(f"{WORKSPACES}/{member.pk}").status_code == 404
        assert client.delete(f"{WORKSPACES}/{member.pk}").status_code == 404
    assert as_ci.get("/api/v1/operations").json()["results"] == []
    member.refresh_from_db()
    assert member.state == Workspace.State.READY
