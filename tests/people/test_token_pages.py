"""/tokens/: made, shown once, revoked; everybody's for administrators."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.catalog.models import Snapshot

PAGE = "/tokens/"


def test_a_token_is_shown_once_and_opens_the_door(
    as_alice: Client, snapshot: Snapshot
) -> None:
    made = as_alice.post(
        PAGE,
        {
            "name": "nightly",
            "days": "30",
            "templates": [snapshot.template_id],
            "purposes": ["build"],
            "max_lease_seconds": "4 h",
            "max_workspaces": "3",
        },
    )

    assert made.status_code == 200
    assert "no-store" in made["Cache-Control"]
    found = re.search(r"<code>([0-9a-f]{64})</code>", made.text)
    assert found is not None
    token = ApiToken.objects.get()
    assert (token.name, token.purposes, token.max_workspaces) == (
        "nightly",
        ["build"],
        3,
    )
    assert token.max_lease_seconds == 4 * 3600
    assert token.template_ids == [snapshot.template_id]
    asked = (
        APIClient()
        .get("/api/v1/tokens", HTTP_AUTHORIZATION=f"Bearer {found[1]}")
        .json()
    )
    assert asked["results"][0]["name"] == "nightly"
    again = as_alice.get(PAGE).text
    assert found[1] not in again
    assert "leases up to 4 h" in again


@pytest.mark.parametrize(
    "wrong",
    [
        {"days": "0"},
        {"days": "9999"},
        {"days": ""},
        {"days": "30", "max_lease_seconds": "soon"},
        {"days": "30", "purposes": ["fun"]},
        {"days": "30", "templates": ["7"]},
        {"days": "30", "max_workspaces": "0"},
        {"days": "30", "name": "x" * 101},
    ],
)
def test_what_cannot_be_is_said_and_nothing_made(
    as_alice: Client, wrong: dict[str, object]
) -> None:
    answer = as_alice.post(PAGE, wrong)

    assert answer.status_code in (409, 422)
    assert 'class="errorlist' in answer.text or "notice-error" in answer.text
    assert not ApiToken.objects.exists()


def test_a_revoked_token_is_gone(as_alice: Client, alice: User) -> None:
    token, _ = token_create(by=alice, name="old")

    answer = as_alice.post(f"{PAGE}{token.token_key}/revoke/", follow=True)

    assert "The token old is no longer valid." in answer.text
    assert not ApiToken.objects.exists()


def test_strangers_revoke_nothing(as_carol: Client, alice: User) -> None:
    token, _ = token_create(by=alice)

    assert as_carol.post(f"{PAGE}{token.token_key}/revoke/").status_code == 404
    assert as_carol.get(PAGE).text.count("Revoke") == 0
    assert ApiToken.objects.exists()


def test_administrators_see_and_revoke_everybodys(
    as_admin: Client, alice: User
) -> None:
    token, secret = token_create(by=alice, name="leaked")
    listed = as_admin.get(f"{PAGE}everybody/").text

    answer = as_admin.post(f"{PAGE}{token.token_key}/revoke/")

    assert "leaked" in listed
    assert "alice" in listed
    assert secret not in listed
    assert answer["Location"] == f"{PAGE}everybody/"
    assert not ApiToken.objects.exists()
