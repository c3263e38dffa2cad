"""Snapshots in the API: marks, what keeps them, asking by quality."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine.models import Operation
from tests.support.api_clients import ApiAnswer
from tests.support.behind import known_to_be_behind
from tests.support.factories import SnapshotFactory
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db


def test_a_snapshot_tells_its_quality_and_freshness(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    known_to_be_behind(snapshot, "bob")

    (row,) = api_as_alice.get("/api/v1/snapshots").json()["results"]

    told = {name: row[name] for name in ("quality", "is_clean", "parts", "behind")}
    assert told == {"quality": "built", "is_clean": False, "parts": [], "behind": 1}


def test_what_keeps_it_is_named_to_administrators_and_counted_for_others(
    api_as_alice: APIClient, api_as_admin: APIClient, snapshot: Snapshot, alice: User
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template, name="mine")
    address = f"/api/v1/snapshots/{snapshot.pk}/pins"

    theirs, ours = api_as_alice.get(address).json(), api_as_admin.get(address).json()

    assert theirs["is_needed"] is True
    assert "new workspaces are cloned from it" in theirs["reasons"]
    assert (theirs["workspaces_count"], theirs["workspaces"]) == (1, None)
    assert ours["workspaces"] == [
        {
            "id": workspace.pk,
            "name": "mine",
            "owner": "alice",
            "state": "provisioning",
        }
    ]


def test_a_workspace_is_asked_for_by_quality(
    api_as_alice: APIClient, template: Template
) -> None:
    tested = SnapshotFactory.create(template=template, quality="tested")
    SnapshotFactory.create(template=template, change=200)

    def ask(**body: object) -> ApiAnswer:
        return api_as_alice.post(
            "/api/v1/workspaces", {"template": template.name, **body}, format="json"
        )

    answer = ask(quality="tested", name="best")
    assert answer.status_code == 202
    assert answer.json()["snapshot"]["id"] == tested.pk
    both = ask(quality="built", snapshot=tested.pk)
    assert both.json()["code"] == "invalid"
    Snapshot.objects.filter(change=200).update(quality="failed")
    Template.objects.filter(pk=template.pk).update(
        test_command="true", wanted_quality="built"
    )
    Snapshot.objects.exclude(change=200).update(quality="failed")
    refused = ask()
    assert refused.status_code == 409
    assert refused.json()["code"] == "no_good_snapshot"


def test_clean_and_partial_builds_are_asked_for(
    api_as_admin: APIClient, snapshot: Snapshot
) -> None:
    address = f"/api/v1/templates/{snapshot.template_id}/build"

    refused = api_as_admin.post(address, {"paths": ["//nowhere/..."]}, format="json")
    assert refused.json()["code"] == "invalid"
    api_as_admin.post(address, {"clean": True, "change": 5}, format="json")

    assert Operation.objects.get().parameters == {"change": 5, "clean": True}
