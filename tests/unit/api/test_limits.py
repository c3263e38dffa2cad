"""Limits over the API: a refusal names them all, and administrators look at them."""

from __future__ import annotations

from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.workspaces.models import Snapshot, Workspace

WORKSPACES = "/api/v1/workspaces"


def test_a_refusal_says_which_limit_and_how_near_the_others_are(
    as_alice: APIClient, alice: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=0)

    answer = as_alice.post(WORKSPACES, {"template": snapshot.template.name})

    assert answer.status_code == 409
    body = answer.json()
    assert body["code"] == "quota_workspaces"
    assert body["detail"].startswith("You have 0 of the 0 workspaces")
    assert body["limits"][0] == {
        "code": "quota_workspaces",
        "title": "Your workspaces",
        "subject": "alice",
        "used": 0,
        "allowed": 0,
        "percent": 100,
        "unit": "things",
        "as_of": None,
    }
    clones = next(x for x in body["limits"] if x["code"] == "clone_limit")
    assert (clones["used"], clones["allowed"]) == (0, 32_767)
    assert not Workspace.objects.exists()
