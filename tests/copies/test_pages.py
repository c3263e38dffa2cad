"""Copies on pages and in the API: who sees them, who switches them on."""

from __future__ import annotations

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.copies.models import CopiedSnapshot, CopyRule, WorkspaceCopy
from provisioner.copies.queries import obstacle_of
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.factories import MirrorFactory
from tests.support.workspaces import ready, workspace

__all__ = ["ready", "workspace"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def mirror(snapshot: Snapshot) -> Mirror:
    return MirrorFactory.create(template=snapshot.template, site__name="bangalore")


@pytest.fixture
def copy(mirror: Mirror, ready: Workspace) -> WorkspaceCopy:
    CopyRule.objects.create(mirror=mirror)
    copy = WorkspaceCopy.objects.create(
        workspace=ready,
        mirror=mirror,
        site=mirror.site,
        state="ready",
        volume_uuid="v",
        relationship_uuid="r",
    )
    now = clocks.database_now()
    CopiedSnapshot.objects.create(
        copy=copy, taken_at=now, arrived_at=now, bytes=3_000_000
    )
    return copy


def test_the_workspace_says_where_it_is_copied(
    copy: WorkspaceCopy, alice: User
) -> None:
    page = browser_of(alice).get(f"/workspaces/{copy.workspace_id}/").text

    assert "Copies at other sites" in page
    assert "Copied to bangalore" in page
    assert "Copy now" in page


def test_what_stands_against_a_copy_is_said(copy: WorkspaceCopy, alice: User) -> None:
    WorkspaceCopy.objects.update(state="waiting", relationship_uuid="")

    page = browser_of(alice).get(f"/workspaces/{copy.workspace_id}/").text
    [shown] = api_of(alice).get("/api/v1/workspace-copies").json()["results"]

    assert f"Its snapshot {copy.workspace.snapshot.name} is not at bangalore." in page
    assert "is not at bangalore" in shown["obstacle"]
    assert shown["last_bytes"] == 3_000_000


def test_a_copy_at_a_promoted_mirror_says_what_to_do(copy: WorkspaceCopy) -> None:
    Mirror.objects.update(state=Mirror.State.PROMOTED)
    copy.mirror.refresh_from_db()

    assert "is the template's home now" in obstacle_of(copy, has_base=True)


def test_a_promotion_names_the_workspaces_whose_copies_end(
    copy: WorkspaceCopy, admin: User
) -> None:
    mirror, name = copy.mirror, copy.workspace.name

    page = browser_of(admin).get(f"/mirrors/{mirror.pk}/promote/").text
    said = api_of(admin).get(f"/api/v1/mirrors/{mirror.pk}/promotion").json()

    assert f"1 workspace: {name} of alice. Nothing more is sent." in page
    assert said["copied"] == [name]


def test_an_administrator_switches_copies_on_and_off(
    mirror: Mirror, admin: User
) -> None:
    browser: Client = browser_of(admin)
    address = f"/mirrors/{mirror.pk}/copies/"

    wrong = browser.post(address, {"every_minutes": 1, "purposes": ["development"]})
    assert wrong.status_code == 422
    browser.post(address, {"every_minutes": 30, "purposes": ["development", "ci"]})

    rule = CopyRule.objects.get()
    assert (rule.every_minutes, rule.purposes) == (30, ["ci", "development"])
    page = browser.get(f"/mirrors/{mirror.pk}/").text
    assert "Every 30 minutes: CI (read-only client), Development." in page
    browser.post(f"{address}off/")
    assert not CopyRule.objects.exists()
    kinds = Event.objects.filter(kind__startswith="copies_").values_list("kind")
    assert {kind for (kind,) in kinds} == {"copies_switched_on", "copies_switched_off"}


def test_the_api_sets_a_rule_once(mirror: Mirror, admin: User) -> None:
    api = api_of(admin)

    first = api.post("/api/v1/copy-rules", {"mirror": mirror.pk}, format="json")
    second = api.post(
        "/api/v1/copy-rules",
        {"mirror": mirror.pk, "every_minutes": 15},
        format="json",
    )

    assert (first.status_code, first.json()["every_minutes"]) == (200, 60)
    assert second.json() == {**first.json(), "every_minutes": 15}
    assert api.delete(f"/api/v1/copy-rules/{first.json()['id']}").status_code == 204
    assert not CopyRule.objects.exists()


def test_a_copy_under_way_is_not_begun_twice(copy: WorkspaceCopy, alice: User) -> None:
    address = f"/api/v1/workspace-copies/{copy.pk}/transfer"
    api = api_of(alice)

    assert api.post(address).status_code == 202
    again = api.post(address)

    assert (again.status_code, again.json()["code"]) == (409, "copy_busy")
