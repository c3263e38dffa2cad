"""Copies on pages and in the API: who sees them, who switches them on."""

from __future__ import annotations

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import CopiedSnapshot, CopyRule, WorkspaceCopy
from provisioner.copies.queries import obstacle_of, places_of
from provisioner.copies.sweeps import tend_all
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import copies_at
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.factories import (
    CopyRuleFactory,
    MirroredSnapshotFactory,
    MirrorFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def mirror(snapshot: Snapshot) -> Mirror:
    return MirrorFactory.create(template=snapshot.template, site__name="bangalore")


@pytest.fixture
def copy(mirror: Mirror, ready: Workspace) -> WorkspaceCopy:
    CopyRuleFactory.create(mirror=mirror)
    copy = WorkspaceCopy.objects.create(
        workspace=ready,
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


def test_a_copy_beyond_a_limit_of_its_site_waits_and_says_why(
    copy: WorkspaceCopy, mirror: Mirror, alice: User
) -> None:
    MirroredSnapshotFactory.create(mirror=mirror, snapshot=copy.workspace.snapshot)
    WorkspaceCopy.objects.update(state="waiting", relationship_uuid="", volume_uuid="")
    Site.objects.filter(pk=mirror.site_id).update(volumes_per_svm=1)
    said = "The site “bangalore” has 1 of the 1 volumes"

    assert tend_all(now=clocks.database_now()) == 0

    page = f"/workspaces/{copy.workspace_id}/"
    assert said in browser_of(alice).get(page).text
    copy.refresh_from_db()
    assert (copy.state, copy.due_at > clocks.database_now()) == ("waiting", True)
    refused = api_of(alice).post(f"/api/v1/workspace-copies/{copy.pk}/transfer")
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_limit")
    Site.objects.filter(pk=mirror.site_id).update(volumes_per_svm=2)
    begun = api_of(alice).post(f"/api/v1/workspace-copies/{copy.pk}/transfer")
    assert begun.status_code == 202
    assert said not in browser_of(alice).get(page).text


@pytest.mark.parametrize(
    ("mirror_state", "said"),
    [
        (Mirror.State.READY, "owner transfers it to the mirror."),
        (Mirror.State.FORMER, "Copies begin when an administrator has re-established"),
        (Mirror.State.GIVEN_UP, "The template has no mirror at bangalore any more."),
        (Mirror.State.DELETED, "The template has no mirror at bangalore any more."),
    ],
)
def test_what_a_first_copy_lacks_at_its_site_is_said(
    copy: WorkspaceCopy, mirror_state: str, said: str
) -> None:
    WorkspaceCopy.objects.update(state="waiting", relationship_uuid="")
    Mirror.objects.update(state=mirror_state, is_former_home=True)
    copy.refresh_from_db()
    assert said in obstacle_of(copy, places_of([copy])[copy.pk])


def test_a_copy_at_the_home_needs_a_snapshot_that_is_still_there(
    copy: WorkspaceCopy,
) -> None:
    WorkspaceCopy.objects.update(state="waiting", relationship_uuid="")
    Template.objects.update(site=copy.site)
    copy.refresh_from_db()
    assert obstacle_of(copy, places_of([copy])[copy.pk]) == ""
    Snapshot.objects.update(deleted_at=clocks.database_now())

    assert "Transfer your work" in obstacle_of(copy, places_of([copy])[copy.pk])


def test_a_mirror_whose_site_copies_need_is_not_deleted(
    mirror: Mirror, admin: User
) -> None:
    CopyRuleFactory.create(mirror=mirror)

    refused = api_of(admin).delete(f"/api/v1/mirrors/{mirror.pk}")

    assert (refused.status_code, refused.json()["code"]) == (409, "copies_lead_there")
    mirror.refresh_from_db()
    assert mirror.state == Mirror.State.READY


def test_a_rule_is_found_at_the_former_home_after_a_promotion(
    mirror: Mirror, admin: User
) -> None:
    rule = CopyRuleFactory.create(mirror=mirror)
    home, template = mirror.template.site, mirror.template
    Mirror.objects.filter(pk=mirror.pk).update(state="promoted")
    Template.objects.filter(pk=template.pk).update(site=mirror.site)
    former = MirrorFactory.create(
        template=template, site=home, state="former", is_former_home=True
    )

    page = browser_of(admin).get(f"/mirrors/{former.pk}/").text
    of_history = browser_of(admin).get(f"/mirrors/{mirror.pk}/").text
    browser_of(admin).post(
        f"/mirrors/{former.pk}/copies/", {"every_minutes": 9, "purposes": ["build"]}
    )

    assert f"copied to {mirror.site.name}, those there to {home.name}." in page
    # What cannot be changed there any more is not offered, nor said to be to come.
    for said in ("Copies of workspaces", "Nothing is there yet", "Not created yet"):
        assert said not in of_history
    rule.refresh_from_db()
    assert (CopyRule.objects.get(), rule.every_minutes) == (rule, 9)


def test_a_promotion_names_the_workspaces_that_can_be_restored(
    copy: WorkspaceCopy, mirror: Mirror, admin: User
) -> None:
    name = copy.workspace.name

    page = browser_of(admin).get(f"/mirrors/{mirror.pk}/promote/").text
    said = api_of(admin).get(f"/api/v1/mirrors/{mirror.pk}/promotion").json()

    assert f"1 workspace: {name} of alice. Copying continues" in page
    assert (said["copied"], said["copies"]) == ([name], 1)
    assert copies_at(mirror, most=0) == (1, [])


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
