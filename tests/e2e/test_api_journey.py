"""A script's way: one call for a ready workspace, one to give it back."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from tests.support.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)

WORKSPACES = "/api/v1/workspaces"


def with_a_token_of(user: User) -> APIClient:
    """Return a client that bought its token with the user's password."""
    client = APIClient()
    pair = base64.b64encode(f"{user.username}:{PASSWORD}".encode()).decode()
    bought = client.post("/api/v1/tokens", HTTP_AUTHORIZATION=f"Basic {pair}")
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {bought.json()['token']}")
    return client


def test_a_script_gets_a_ready_workspace_and_gives_it_back(
    built_template: Template, worker: Child, alice: User
) -> None:
    client = with_a_token_of(alice)
    asked = {"template": built_template.name, "name": "from-a-script"}

    got = client.post(
        f"{WORKSPACES}?wait=60", asked, format="json", HTTP_IDEMPOTENCY_KEY="job 1"
    )

    assert got.status_code == 201
    workspace = got.json()
    assert (workspace["state"], workspace["status_message"]) == ("ready", "")
    assert Path(workspace["path"], ".p4config").exists()
    assert workspace["operation"]["state"] == "succeeded"
    assert workspace["operation"]["current_steps"] == []

    again = client.post(WORKSPACES, asked, format="json", HTTP_IDEMPOTENCY_KEY="job 1")
    assert again.json()["id"] == workspace["id"]
    assert again.json()["operation"] == workspace["operation"]

    back = client.delete(f"{WORKSPACES}/{workspace['id']}?wait=60&purge=true")

    assert back.status_code == 202
    assert (back.json()["state"], back.json()["status_message"]) == ("retired", "")
    assert not Path(workspace["path"]).exists()
    steps = client.get(f"/api/v1/operations/{back.json()['operation']['id']}").json()
    assert {step["state"] for step in steps["steps"]} == {"done"}
