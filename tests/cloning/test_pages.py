"""Who may clone a workspace, for whom, and what pages and previews say."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import Team, User
from provisioner.cloning.models import WorkspaceClone
from provisioner.lib import clocks
from provisioner.lib.times import exact
from provisioner.workspace_snapshots.models import WorkspaceSnapshot
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_its_owner_clones_it_once(ready: Workspace, alice: User) -> None:
    browser, page = browser_of(alice), f"/workspaces/{ready.pk}/"
    assert "Clone it…" in browser.get(page).text
    assert "not purged, until the clone" in browser.get(f"{page}clone/").text

    made = browser.post(f"{page}clone/", {"name": "look"})
    again = browser.post(f"{page}clone/", {"name": "look"})

    cloning = WorkspaceClone.objects.get()
    assert made["Location"] == again["Location"]
    assert (cloning.workspace.name, cloning.workspace.owner) == ("look", alice)
    assert (cloning.has_own_snapshot, cloning.taken_at) == (True, None)
    assert "Cloned as" in browser.get(page).text
    assert "It is a clone of" in browser.get(made["Location"]).text
    assert "Its purge waits" in browser.get(f"{page}retire/").text


def test_who_gets_it_must_see_the_original(
    ready: Workspace, alice: User, carol: User
) -> None:
    alice.team = Team.objects.create(name="tools")
    alice.save()
    bob = UserFactory.create(username="bob", team=alice.team)
    browser, page = browser_of(alice), f"/workspaces/{ready.pk}/clone/"
    refused = browser.post(page, {"owner": carol.username})
    assert refused.status_code == 409
    assert "Share it with them first" in refused.text
    assert "no account with this name" in browser.post(page, {"owner": "x"}).text
    assert browser_of(bob).get(page).status_code == 403

    browser.post(page, {"owner": bob.username})

    assert WorkspaceClone.objects.get().workspace.owner == bob


def test_whom_it_was_shared_with_for_cloning_clones_it_as_it_is(
    ready: Workspace, alice: User, carol: User
) -> None:
    browser, page = browser_of(carol), f"/workspaces/{ready.pk}/"
    share = {"kind": "person", "name": carol.username}
    browser_of(alice).post(f"{page}share/", share)
    assert "Clone it…" not in browser.get(page).text
    refused = browser.post(f"{page}clone/")
    assert (refused.status_code, WorkspaceClone.objects.count()) == (403, 0)

    browser_of(alice).post(f"{page}share/", {**share, "may_clone": "on"})
    form = browser.get(f"{page}clone/").text
    browser.post(f"{page}clone/", {"owner": alice.username, "name": "look"})

    assert "may clone it" in browser_of(alice).get(page).text
    assert "Clone it…" in browser.get(page).text
    assert 'name="name"' in form
    assert 'name="owner"' not in form
    cloning = WorkspaceClone.objects.get()
    assert (cloning.workspace.owner, cloning.has_own_snapshot) == (carol, True)
    address = f"/api/v1/workspaces/{ready.pk}/clone"
    assert api_of(carol).post(address, {"owner": alice.username}).status_code == 403
    browser_of(alice).post(f"{page}share/", share)
    assert api_of(carol).post(address, {"name": "more"}).status_code == 403


def test_an_administrator_clones_what_is_ready(ready: Workspace, admin: User) -> None:
    User.objects.filter(pk=admin.pk).update(uid=20009, gid=20000)
    page = f"/workspaces/{ready.pk}/clone/"
    browser_of(admin).post(page)
    assert WorkspaceClone.objects.get().workspace.owner == admin
    Workspace.objects.filter(pk=ready.pk).update(
        state="failed", status_code="x", failed_at=clocks.database_now()
    )

    assert browser_of(admin).post(page).status_code == 409


def test_a_quota_counts_its_clones(ready: Workspace, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=1)

    refused = browser_of(alice).post(f"/workspaces/{ready.pk}/clone/")

    assert refused.status_code == 409
    assert not WorkspaceClone.objects.exists()


def test_the_api_clones_as_of_a_snapshot(ready: Workspace, alice: User) -> None:
    api, address = api_of(alice), f"/api/v1/workspaces/{ready.pk}/clone"
    snapshot = WorkspaceSnapshot.objects.create(
        workspace=ready, name="s", ontap_uuid="u", taken_at=clocks.database_now()
    )

    form = browser_of(alice).get(f"/workspaces/{ready.pk}/clone/").text
    first = api.post(address, {"snapshot": snapshot.pk})
    second = api.post(address, {"snapshot": snapshot.pk})

    assert f"{exact(snapshot.taken_at)} (s)" in form
    assert first.status_code == 202, first.text
    assert first.json()["id"] == second.json()["id"]
    cloning = WorkspaceClone.objects.get()
    assert (cloning.snapshot_name, cloning.has_own_snapshot) == ("s", False)
    gone = api.post(address, {"snapshot": snapshot.pk + 1})
    assert gone.json()["code"] == "snapshot_of_workspace_gone"
    assert api.post(address, {"owner": "nobody"}).status_code == 400
