"""`freshness` and `refresh` of templates, and POST /api/v1/templates/{id}/refresh."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from provisioner.catalog.models import RefreshPolicy, Snapshot
from tests.support.behind import known_to_be_behind

TEMPLATES = "/api/v1/templates"


def address_of(snapshot: Snapshot) -> str:
    return f"{TEMPLATES}/{snapshot.template_id}"


def test_freshness_and_refresh_are_said(
    api_as_carol: APIClient, snapshot: Snapshot
) -> None:
    assert api_as_carol.get(address_of(snapshot)).json()["freshness"] is None
    known_to_be_behind(snapshot, "bob", "alice", "bob")

    [listed] = api_as_carol.get(TEMPLATES).json()["results"]
    alone = api_as_carol.get(address_of(snapshot)).json()

    assert listed["freshness"] == alone["freshness"]
    assert listed["freshness"]["changes"] == 3
    assert listed["freshness"]["newest"] == snapshot.change + 3
    assert listed["freshness"]["users"] == ["alice", "bob"]
    assert listed["refresh"]["mode"] == "manual"


def test_an_administrator_sets_a_policy(
    api_as_admin: APIClient, snapshot: Snapshot
) -> None:
    asked = {"mode": "cron", "cron": "0 3  * * mon-fri", "unused_days": 7}

    answer = api_as_admin.post(f"{address_of(snapshot)}/refresh", asked, format="json")

    assert answer.status_code == 200
    refresh = answer.json()["refresh"]
    assert refresh["cron"] == "0 3 * * mon-fri"
    assert refresh["sentence"].startswith("Built at 0 3 * * mon-fri (UTC)")
    assert RefreshPolicy.objects.get().unused_days == 7


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"mode": "often"}, 400),
        ({"mode": "on_change", "quiet_seconds": "120"}, 400),
        ({"mode": "on_change", "quiet_seconds": -1}, 400),
        ({"mode": "on_change", "unused_days": 0}, 400),
        ({"mode": "cron"}, 400),
        ({"mode": "cron", "cron": "R R * * *"}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    body: dict[str, Any], status: int, api_as_admin: APIClient, snapshot: Snapshot
) -> None:
    answer = api_as_admin.post(f"{address_of(snapshot)}/refresh", body, format="json")
    assert answer.status_code == status, answer.content
    assert not RefreshPolicy.objects.exists()


def test_others_set_no_policy(
    api_as_carol: APIClient, api_as_nobody: APIClient, snapshot: Snapshot
) -> None:
    asked = {"mode": "on_change"}
    for client, status in ((api_as_carol, 403), (api_as_nobody, 401)):
        answer = client.post(f"{address_of(snapshot)}/refresh", asked, format="json")
        assert answer.status_code == status
    assert not RefreshPolicy.objects.exists()
